#include "shape/gpu_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <medley/error.hpp>
#include <nlohmann/json.hpp>

#include "shape/attention_model.hpp"
#include "shape/gemm_features.hpp"
#include "shape/stream_model.hpp"
#include "shape/tile_model.hpp"
#include "shape/trees.hpp"

namespace medley::shape {
namespace embedded {
extern const std::string_view h200_json;
}

struct GpuModel::State {
  Gpu gpu;
  TileConstants tiles;
  Trees correction;
  AttentionModel attention;
  StreamModel streams;
  bool calibrated = false;
  std::string provenance = "datasheet";
};

std::string_view GemmTime::lost_to() const noexcept {
  const std::array<std::pair<std::string_view, double>, 5> causes{{{"alignment", lost.alignment},
                                                                   {"tile", lost.tile},
                                                                   {"wave", lost.wave},
                                                                   {"memory", lost.memory},
                                                                   {"launch", lost.launch}}};
  const auto worst = std::ranges::max_element(causes, {}, [](const auto& c) { return c.second; });
  return worst->second > 0.05 * us ? worst->first : "none";
}

GpuModel::GpuModel(const Gpu& gpu)
    : state_(std::make_shared<State>(State{.gpu = gpu,
                                           .tiles = TileConstants::from_datasheet(gpu),
                                           .correction = {},
                                           .attention = AttentionModel(TileConstants::from_datasheet(gpu)),
                                           .streams = StreamModel(TileConstants::from_datasheet(gpu))})) {}

GpuModel::GpuModel(const Gpu& gpu, std::string_view calibration) : GpuModel(gpu) {
  try {
    const auto json = nlohmann::json::parse(calibration);
    State state{
        .gpu = gpu,
        .tiles = TileConstants::from_json(json.at("gemm").at("constants")),
        .correction = Trees::from_json(json.at("gemm").at("trees")),
        .attention = state_->attention,
        .streams = state_->streams,
        .calibrated = true,
        .provenance = fmt::format("measured {} on {}, driver {}, CUDA {}, cuBLAS {}, {} products",
                                  json.at("date").get<std::string>(), json.at("device").get<std::string>(),
                                  json.at("driver").get<std::string>(), json.at("cuda").get<std::string>(),
                                  json.at("cublas").get<std::string>(), json.at("products").get<int>())};
    if (json.contains("attention")) state.attention = AttentionModel(state.tiles, json.at("attention"));
    if (json.contains("streams")) state.streams = StreamModel(json.at("streams"));
    state_ = std::make_shared<State>(std::move(state));
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorKind::invalid, fmt::format("not a calibration of medley shape bench: {}", error.what()));
  }
}

GpuModel GpuModel::named(std::string_view name) {
  const Gpu& gpu = find_gpu(name);
  if (name != "h200-sxm") return GpuModel(gpu);
  static const GpuModel h200(gpu, embedded::h200_json);  // parsed once: it is large
  return h200;
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
  return state_->tiles.tflops[std::size_t(type)];
}
double GpuModel::bandwidth_gb_per_s() const noexcept {
  return state_->tiles.gb_per_s;
}

double GpuModel::roofline_us(const Gemm& g) const {
  return std::max(g.flops() / peak_tflops(g.type) * 1e-6, g.bytes() / bandwidth_gb_per_s() * 1e-3);
}

namespace {

/// fp8 kernels exist in TN alone on Hopper; frameworks transpose the operands first.
Gemm as_run(const Gemm& gemm) {
  Gemm run = gemm;
  if (run.type == GemmType::fp8) run.layout = GemmLayout::TN;
  return run;
}

double corrected(const TileChoice& choice, const Gemm& gemm, const Trees& correction, int sms) {
  if (correction.empty()) return choice.us;
  return choice.us * std::exp(correction.predict(gemm_features(gemm, choice, sms)));
}

/// The same product with every contiguous extent rounded up to 128 bytes.
Gemm aligned(const Gemm& gemm) {
  Gemm round = gemm;
  const auto up = [](std::int64_t extent) { return (extent + 63) / 64 * 64; };
  round.m = up(gemm.m);
  if (gemm.layout != GemmLayout::NT) round.k = up(gemm.k);
  if (gemm.layout == GemmLayout::NT) round.n = up(gemm.n);
  return round;
}

}  // namespace

double GpuModel::predict_us(const Gemm& gemm) const {
  check(gemm);
  const Gemm run = as_run(gemm);
  return corrected(choose_tile(state_->tiles, state_->gpu.sms, run), run, state_->correction,
                   state_->gpu.sms);
}

double GpuModel::sustained_us(const Gemm& gemm) const {
  // PyTorch layers of the zoo, forward and backward on the H200, take 5 to 12 % longer than their parts in
  // bursts, and those on slow misaligned kernels do not (bench/shape/data/h200_validate.csv): power follows
  // the arithmetic rate.
  constexpr double throttled_at_peak = 0.09;
  const double us = predict_us(gemm), share = gemm.flops() / us * 1e-6 / peak_tflops(gemm.type);
  return us * (1 + throttled_at_peak * share * share);
}

GemmTime GpuModel::predict(const Gemm& gemm) const {
  check(gemm);
  const State& s = *state_;
  const Gemm run = as_run(gemm);
  const TileChoice choice = choose_tile(s.tiles, s.gpu.sms, run);
  GemmTime time;
  time.us = corrected(choice, run, s.correction, s.gpu.sms);
  time.tflops = run.flops() / time.us * 1e-6;
  time.efficiency = time.tflops / peak_tflops(run.type);
  time.kernel = fmt::format("{}x{} split {}", choice.tile_m, choice.tile_n, choice.split);

  const double ideal = run.flops() / peak_tflops(run.type) * 1e-6;
  TileChoice clean = choice;  // what the rest of the loss is read from: the aligned product's own tiles
  if (alignment_class(run) != AlignmentClass::bytes16) {
    const Gemm round = aligned(run);
    clean = choose_tile(s.tiles, s.gpu.sms, round);
    time.lost.alignment = std::max(0.0, time.us - corrected(clean, round, s.correction, s.gpu.sms));
  }
  // The physical model's own parts, scaled to what is really lost beside alignment.
  const double useful = clean.quantisation.tile_efficiency * clean.quantisation.wave_efficiency;
  const double per_wave = clean.compute_us * clean.quantisation.wave_efficiency;
  const double tile =
      per_wave * (1 - clean.quantisation.tile_efficiency) + std::max(0.0, clean.compute_us * useful - ideal);
  const double wave = clean.compute_us - per_wave;
  const double memory = std::max(0.0, clean.us - clean.launch_us - clean.compute_us);
  const double parts = tile + wave + memory + clean.launch_us;
  const double scale = std::max(0.0, time.us - time.lost.alignment - ideal) / std::max(parts, 1e-9);
  time.lost.tile = tile * scale;
  time.lost.wave = wave * scale;
  time.lost.memory = memory * scale;
  time.lost.launch = clean.launch_us * scale;
  return time;
}

double GpuModel::attention_us(const Attention& attention, bool backward, AttentionKernel kernel) const {
  return state_->attention.us(attention, backward, kernel);
}

double GpuModel::stream_us(StreamOp op, double bytes) const {
  return state_->streams.us(op, bytes);
}

}  // namespace medley::shape
