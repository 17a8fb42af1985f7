#include "plan/cost/kernel_time.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace medley::plan {
namespace {

struct Tile {
  double m, n;
};
constexpr std::array<Tile, 6> tiles{{{256, 128}, {128, 256}, {128, 128}, {128, 64}, {64, 128}, {64, 64}}};

/// fp32 runs on the tensor cores as TF32 at half the rate; the rest at the rate of bf16.
double type_factor(DType dtype) {
  return dtype == DType::f32 ? 2 : 1;
}

/// A measured sweep is of the whole GPU; a machine may give its ranks half of one.
shape::GpuModel measured_or_datasheet(const shape::Gpu& gpu) {
  return shape::find_gpu(gpu.name).sms == gpu.sms ? shape::GpuModel::named(gpu.name) : shape::GpuModel(gpu);
}

}  // namespace

KernelTime::KernelTime(const shape::Gpu& gpu, const CostConstants& constants)
    : model_(measured_or_datasheet(gpu)),
      sms_(gpu.sms),
      matmul_rate_(
          (gpu.measured_tflops > 0 ? gpu.measured_tflops : constants.matmul_share * gpu.bf16_tflops) * 1e6),
      memory_rate_(constants.memory_share * gpu.hbm_gb_per_s * 1e3),
      constants_(constants) {}

/// A GPU with a measured sweep is timed by the shape room's model of it; others from the datasheet.
double KernelTime::gemm_us(const Gemm& g, DType dtype) const {
  if (!model_.calibrated() || size_of(dtype) != 2) return datasheet_gemm_us(g, dtype);
  // cuBLAS counts columns first: the row-major product with m and n exchanged.
  const shape::GemmLayout layout = g.layout == "NN"   ? shape::GemmLayout::NN
                                   : g.layout == "NT" ? shape::GemmLayout::NT
                                                      : shape::GemmLayout::TN;
  return model_.predict_us({.m = g.n, .n = g.m, .k = g.k, .batch = g.batch, .layout = layout});
}

/// Tiles come in waves of one per multiprocessor, so that nothing hides the writing of a tile; the library is
/// taken to pick the fastest tile.
double KernelTime::datasheet_gemm_us(const Gemm& g, DType dtype) const {
  const double m = static_cast<double>(g.m), n = static_cast<double>(g.n), k = static_cast<double>(g.k);
  const double batch = static_cast<double>(g.batch), element = static_cast<double>(size_of(dtype));
  double best = std::numeric_limits<double>::infinity();
  for (const Tile& tile : tiles) {
    const double count = std::ceil(m / tile.m) * std::ceil(n / tile.n) * batch;
    const double area = tile.m * tile.n;
    const double share = area >= 32768   ? 1.0
                         : area >= 16384 ? constants_.tile_128
                         : area >= 8192  ? constants_.tile_128 * constants_.tile_64
                                         : constants_.tile_128 * constants_.tile_64 * constants_.tile_64;
    const double waves = std::ceil(count / sms_);
    best = std::min(best, waves * sms_ * area * 2 * (k + constants_.k_ramp) / (matmul_rate_ * share));
  }
  if (g.n % 8 != 0 || g.k % 8 != 0) best /= constants_.misaligned_share;
  best *= type_factor(dtype);
  return std::max(best, memory_us(element * batch * (m * k + n * k))) + memory_us(element * batch * m * n);
}

/// FlashAttention counts 4·s²·d per head forward and 2.5 times that backward (it recomputes the scores).
double KernelTime::attention_us(const Attention& a, bool backward) const {
  if (model_.calibrated()) {
    return model_.attention_us({.batch = a.batch,
                                .heads = a.heads,
                                .kv_heads = a.kv_heads,
                                .seq_q = a.queries,
                                .seq_k = a.keys,
                                .head_dim = a.head_dim,
                                .causal = a.causal},
                               backward);
  }
  const double pairs = static_cast<double>(a.queries) * static_cast<double>(a.keys) * (a.causal ? 0.5 : 1.0);
  const double heads = static_cast<double>(a.batch) * static_cast<double>(a.heads);
  const double flops = 2 * heads * pairs * static_cast<double>(a.head_dim + a.value_dim);
  return backward ? 2.5 * flops / (matmul_rate_ * constants_.flash_backward_share)
                  : flops / (matmul_rate_ * constants_.flash_share);
}

}  // namespace medley::plan
