#include "shape/pricer.hpp"

namespace medley::shape {

Cost& Cost::operator+=(const Cost& other) noexcept {
  gemm += other.gemm;
  attention += other.attention;
  memory += other.memory;
  communication += other.communication;
  flops += other.flops;
  return *this;
}

Cost Cost::operator*(double factor) const noexcept {
  return {gemm * factor, attention * factor, memory * factor, communication * factor, flops * factor};
}

// Extents differ in their low digits; a multiply per field spreads them over the table.
std::size_t Pricer::Hash::operator()(const Key& key) const noexcept {
  std::uint64_t h = 0;
  for (const std::int64_t part : {key.m, key.n, key.k, key.batch, key.kind}) {
    h = (h ^ std::uint64_t(part)) * 0x9E3779B97F4A7C15u;
    h ^= h >> 29;
  }
  return h;
}

double Pricer::gemm_us(const Gemm& gemm) {
  const auto kind = std::int64_t(gemm.layout) * 4 + std::int64_t(gemm.type);
  const auto [at, fresh] = known_.try_emplace({gemm.m, gemm.n, gemm.k, gemm.batch, kind}, 0.0);
  if (fresh) at->second = gpu_.predict_us(gemm);
  return at->second;
}

double Pricer::attention_us(const Attention& a, bool backward, AttentionKernel kernel) {
  // kinds 16 and above are attention's: heads and their width ride in it, both below 2^20 by plan::check
  const std::int64_t kind =
      16 + backward + 2 * a.causal + 4 * int(kernel) + 8 * (a.head_dim + (a.kv_heads << 20));
  const auto [at, fresh] = known_.try_emplace({a.seq_q, a.seq_k, a.heads, a.batch, kind}, 0.0);
  if (fresh) at->second = gpu_.attention_us(a, backward, kernel);
  return at->second;
}

double Pricer::us(const Operator& op) {
  double one = 0;
  if (const auto* gemm = std::get_if<Gemm>(&op.work))
    one = gemm_us(*gemm);
  else if (const auto* attention = std::get_if<Attention>(&op.work))
    one = attention_us(*attention, op.pass == Pass::backward, op.kernel);
  else if (const auto* stream = std::get_if<Stream>(&op.work))
    one = gpu_.stream_us(stream->op, stream->bytes);
  return one * double(op.count);
}

Cost Pricer::price(const Operators& operators) {
  Cost cost;
  for (const Operator& op : operators) {
    const double t = us(op);
    (std::holds_alternative<Gemm>(op.work)        ? cost.gemm
     : std::holds_alternative<Attention>(op.work) ? cost.attention
                                                  : cost.memory) += t;
    if (op.pass != Pass::recompute) cost.flops += op.flops();
  }
  return cost;
}

}  // namespace medley::shape
