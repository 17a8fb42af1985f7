#include "shape/gpu_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <medley/error.hpp>

namespace medley::shape {

struct GpuModel::State {
  Gpu gpu;
  bool calibrated = false;
  std::string provenance = "datasheet";
};

double Attention::flops() const noexcept {
  return (causal ? 2.0 : 4.0) * double(batch) * double(heads) * double(seq_q) * double(seq_k) *
         double(head_dim);
}

std::string_view GemmTime::lost_to() const noexcept {
  const std::array<std::pair<std::string_view, double>, 5> causes{{{"alignment", lost.alignment},
                                                                   {"tile", lost.tile},
                                                                   {"wave", lost.wave},
                                                                   {"memory", lost.memory},
                                                                   {"launch", lost.launch}}};
  const auto worst = std::ranges::max_element(causes, {}, [](const auto& c) { return c.second; });
  return worst->second > 0.05 * us ? worst->first : "none";
}

GpuModel::GpuModel(const Gpu& gpu) : state_(std::make_shared<State>(State{.gpu = gpu})) {}
GpuModel::GpuModel(const Gpu& gpu, std::string_view) : GpuModel(gpu) {}
GpuModel GpuModel::named(std::string_view gpu) {
  return GpuModel(find_gpu(gpu));
}

const Gpu& GpuModel::gpu() const noexcept {
  return state_->gpu;
}
bool GpuModel::calibrated() const noexcept {
  return state_->calibrated;
}
std::string GpuModel::provenance() const {
  return state_->provenance;
}
double GpuModel::peak_tflops(GemmType type) const noexcept {
  // power and clocks hold real GEMMs near 80 % of the datasheet (H100, A100, B200 of the table)
  const Gpu& g = state_->gpu;
  const double dense = g.measured_tflops > 0 ? g.measured_tflops : 0.8 * g.bf16_tflops;
  return type == GemmType::fp8 ? 2 * dense : dense;
}
double GpuModel::bandwidth_gb_per_s() const noexcept {
  return 0.9 * state_->gpu.hbm_gb_per_s;
}

double GpuModel::roofline_us(const Gemm& g) const {
  return std::max(g.flops() / peak_tflops(g.type) * 1e-6, g.bytes() / bandwidth_gb_per_s() * 1e-3);
}

GemmTime GpuModel::predict(const Gemm& g) const {
  check(g);
  const double sms = state_->gpu.sms, rate = peak_tflops(g.type) * 1e6 / sms;  // flop per us per SM
  const double memory = g.bytes() / bandwidth_gb_per_s() * 1e-3, launch = 2.0;
  const double ideal = g.flops() / (rate * sms);
  const int least = g.alignment().least(), full = state_->gpu.full_alignment();
  const double penalty = least >= 8 ? (least >= full ? 1.0 : 1.05) : least >= 2 ? 2.0 : 4.0;
  GemmTime best;
  best.us = 1e300;
  for (const auto& [tm, tn] : {std::pair{256, 128}, {128, 256}, {128, 128}, {128, 64}, {64, 128}, {64, 64}}) {
    const double tiles = std::ceil(double(g.m) / tm) * std::ceil(double(g.n) / tn) * double(g.batch);
    const double waves = std::ceil(tiles / sms);
    // small tiles reload operands more often: they reach less of the rate
    const double share = tm * tn >= 32768 ? 1.0 : tm * tn >= 16384 ? 0.9 : tm * tn >= 8192 ? 0.7 : 0.5;
    const double per_tile = 2.0 * tm * tn * double(g.k) / (rate * share);
    const double compute = waves * per_tile;
    const double us = std::max(compute * penalty, memory) + launch;
    if (us >= best.us) continue;
    best.us = us;
    best.kernel = fmt::format("{}x{} split 1", tm, tn);
    const double padded = tiles * per_tile / sms;
    best.lost = {.alignment = std::max(0.0, us - std::max(compute, memory) - launch),
                 .tile = std::max(0.0, padded - ideal),
                 .wave = std::max(0.0, compute - padded),
                 .memory = std::max(0.0, memory - compute),
                 .launch = launch};
  }
  best.tflops = g.flops() / best.us * 1e-6;
  best.efficiency = best.tflops / peak_tflops(g.type);
  return best;
}

double GpuModel::predict_us(const Gemm& gemm) const {
  return predict(gemm).us;
}

double GpuModel::attention_us(const Attention& a, bool backward) const {
  const double rate = 0.6 * peak_tflops(GemmType::bf16) * 1e6;
  return a.flops() * (backward ? 2.5 / 0.8 : 1.0) / rate + 5.0;
}

double GpuModel::stream_us(StreamOp, double bytes) const {
  return bytes / bandwidth_gb_per_s() * 1e-3 + 3.0;
}

}  // namespace medley::shape
