#include "cost/kernel_time.hpp"

#include <algorithm>

namespace medley::cost {

// Extents differ in their low digits; one multiply per field spreads them over the table.
std::size_t KernelTime::Hash::operator()(const Key& key) const noexcept {
  std::uint64_t h = 0;
  for (const std::int64_t part : {key.m, key.n, key.k, key.batch, key.kind}) {
    h = (h ^ std::uint64_t(part)) * 0x9E3779B97F4A7C15u;
    h ^= h >> 29;
  }
  return h;
}

Gemm cublas_gemm(const plan::Gemm& g, DType dtype) {
  const GemmLayout layout = g.layout == "NN" ? GemmLayout::NN : g.layout == "NT" ? GemmLayout::NT : GemmLayout::TN;
  const GemmType type = g.fp8 ? GemmType::fp8 : dtype == DType::f16 ? GemmType::fp16 : GemmType::bf16;
  return {.name = {}, .m = g.n, .n = g.m, .k = g.k, .batch = g.batch, .layout = layout, .type = type};
}

// A step keeps the GPU busy for long: the power limit, not the boost clock, sets the rate.
double KernelTime::gemm_us(const Gemm& gemm) {
  const auto kind = std::int64_t(gemm.layout) * 4 + std::int64_t(gemm.type);
  const auto [at, fresh] = known_.try_emplace({gemm.m, gemm.n, gemm.k, gemm.batch, kind}, 0.0);
  if (fresh) at->second = model_.sustained_us(gemm);
  return at->second;
}

// Kernels of several streams fill each other's last waves, but less well than one batched kernel: the faster
// of single products one after the other and the share of the batched rate that grouped kernels reach.
double KernelTime::grouped_us(const Gemm& gemm) {
  Gemm one = gemm;
  one.batch = 1;
  return std::min(static_cast<double>(gemm.batch) * gemm_us(one), gemm_us(gemm) / model_.grouped_share());
}

double KernelTime::attention_us(const plan::Attention& a, bool backward) {
  // kinds from 16 on are attention: they encode the heads and their width, both below 2^20 by model::check
  const std::int64_t kind =
      16 + backward + 2 * a.causal + 4 * int(a.kernel) + 16 * (a.head_dim + a.value_dim + (a.kv_heads << 21));
  if (a.share < 1) return windowed_us(a, backward);
  const auto [at, fresh] = known_.try_emplace({a.queries, a.keys, a.heads, a.batch, kind}, 0.0);
  if (!fresh) return at->second;
  const AttentionKernel best = model_.gpu().newest_attention() ? AttentionKernel::cudnn : AttentionKernel::flash;
  const AttentionKernel kernel = a.kernel == AttentionKernel::best ? best : a.kernel;
  const Attention fused{.batch = a.batch,
                        .heads = a.heads,
                        .kv_heads = a.kv_heads,
                        .seq_q = a.queries,
                        .seq_k = a.keys,
                        // the kernel's model has one width; the mean keeps the flops where the two differ
                        .head_dim = (a.head_dim + a.value_dim) / 2,
                        .causal = a.causal};
  double us = model_.attention_us(fused, backward, kernel == AttentionKernel::cudnn ? kernel : AttentionKernel::flash);
  if (kernel == AttentionKernel::flash1) us /= flash1_share_;
  // With few queries (decode), reading the cache's keys and values is bound by memory.
  const double cache = 2.0 * double(a.batch) * double(a.kv_heads) * double(a.keys) * double(a.head_dim + a.value_dim);
  return at->second = std::max(us, model_.stream_us(StreamOp::elementwise, cache));
}

// A kernel with a window skips the tiles of 128 keys outside the window and computes those on its edge whole.
// Few tiles a row also leave its pipeline empty: forward kernels take as long as 7 tiles more than the pairs
// they need for heads of 64 and a window of 128, 4 for heads of 192, 1 to 2 for heads of 256 and a window of
// 1,024 (medians of TensorRT-LLM's on Hopper and Blackwell, ai-dynamo/aiconfigurator). It still reads every
// key and value once.
double KernelTime::windowed_us(const plan::Attention& a, bool backward) {
  plan::Attention whole = a;
  whole.share = 1;
  const double tile = 128 * std::max(1.0, 512.0 / double(a.head_dim));
  const double row = double(a.keys) / (a.causal ? 2 : 1);  // keys of the average query
  const double computed = std::min(1.0, a.share + tile / row);
  const double bytes = 2.0 * double(a.batch) *
                       (double(a.kv_heads) * double(a.keys) + double(a.heads) * double(a.queries)) *
                       double(a.head_dim + a.value_dim);
  return std::max(attention_us(whole, backward) * computed,
                  model_.stream_us(StreamOp::elementwise, bytes) * (backward ? 2 : 1));
}

// The epilogue reads what it adds to while other tiles are computed: on an H200, adding to bf16 takes no
// longer than writing it, adding to f32 a quarter of the time of the additional bytes
// (bench/shape/data/h200_steps.csv).
double KernelTime::accumulation_us(const plan::Gemm& g) const {
  const double bytes = double(g.accumulated) * double(g.m) * double(g.n) * double(g.batch);
  return 0.25 * (model_.stream_us(StreamOp::elementwise, bytes) - model_.stream_us(StreamOp::elementwise, 0));
}

double KernelTime::us(const Entry& entry) {
  switch (entry.kind) {
    case Kind::gemm: {
      plan::Gemm part = entry.gemm;
      part.m = std::max<Count>(1, part.m / part.parts);
      const Gemm gemm = cublas_gemm(part, entry.dtype);
      // f32 runs on the tensor cores as TF32 at half the rate.
      return static_cast<double>(part.parts) * (part.grouped ? grouped_us(gemm) : gemm_us(gemm)) *
                 (entry.dtype == DType::f32 ? 2 : 1) +
             accumulation_us(entry.gemm);
    }
    case Kind::attention: return attention_us(entry.attention, entry.phase == Phase::backward);
    case Kind::memory: {
      const double each = static_cast<double>(entry.bytes) / entry.kernels;
      return entry.kernels * model_.stream_us(entry.stream, each);
    }
    default: return 0;
  }
}

}  // namespace medley::cost
