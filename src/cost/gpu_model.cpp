#include "cost/gpu_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <medley/error.hpp>
#include <mutex>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/format_version.hpp"
#include "cost/attention_model.hpp"
#include "cost/gemm_features.hpp"
#include "cost/stream_model.hpp"
#include "cost/tile_model.hpp"
#include "cost/trees.hpp"

namespace medley {
namespace embedded {
extern const std::vector<std::pair<std::string_view, std::string_view>> calibrations;
}
}  // namespace medley
namespace medley::cost {

namespace {

std::string_view embedded_calibration(std::string_view gpu) {
  for (const auto& [stem, text] : embedded::calibrations)
    if (stem == gpu) return text;
  return {};
}

}  // namespace

struct GpuModel::State {
  Gpu gpu;
  TileConstants tiles;
  Trees correction;
  AttentionModel attention;
  StreamModel streams;
  bool calibrated = false;
  std::string provenance = "datasheet";
  double grouped_share = 0.7;
  double attention_scale =
      1;  ///< attention times relative to the reference's, after scaling by both GPUs' product rates
  /// Tables of inference engines contain forward products of aligned sizes. Other products and fp8 take their
  /// ratio to those from a GPU with a full sweep.
  std::shared_ptr<const GpuModel> reference;
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
                                           .streams = StreamModel(TileConstants::from_datasheet(gpu)),
                                           .reference = {}})) {}

namespace {

/// One line about a calibration's origin and measured error.
std::string describe(const nlohmann::json& json) {
  const auto text = [&](const char* key) { return json.value(key, std::string{}); };
  std::string line =
      json.contains("source")
          ? fmt::format("fitted to {} products of {} on {}, {}", json.at("products").get<int>(), text("source"),
                        text("device"), text("date"))
          : fmt::format("measured {} on {}, driver {}, CUDA {}, cuBLAS {}, {} products", text("date"), text("device"),
                        text("driver"), text("cuda"), text("cublas"), json.at("products").get<int>());
  if (json.contains("held_out_error"))
    line += fmt::format("; held-out error {:.1f} %", 100 * json.at("held_out_error").get<double>());
  return line;
}

}  // namespace

GpuModel::GpuModel(const Gpu& gpu, std::string_view calibration, std::string_view source) : GpuModel(gpu) {
  constexpr core::FileFormat file_format{"calibration", 1, calibration_format,
                                         "measure again with medley shape bench or medley shape fit"};
  try {
    const auto json = nlohmann::json::parse(calibration);
    core::check_format(file_format, source, json.value("format", std::int64_t{1}));  // once it had no number
    State state{.gpu = gpu,
                .tiles = TileConstants::from_json(json.at("gemm").at("constants")),
                .correction = Trees::from_json(json.at("gemm").at("trees")),
                .attention = state_->attention,
                .streams = state_->streams,
                .calibrated = true,
                .provenance = describe(json),
                .reference = {}};
    state.grouped_share = json.value("grouped_share", state.grouped_share);
    if (json.contains("attention")) state.attention = AttentionModel(state.tiles, json.at("attention"));
    if (json.contains("streams")) state.streams = StreamModel(json.at("streams"));
    if (json.contains("like")) {
      const std::string like = json.at("like").get<std::string>();
      const std::string_view text = embedded_calibration(like);
      if (text.empty())
        throw Error(ErrorKind::invalid, fmt::format("calibration like '{}', which is not shipped", like));
      state.reference = std::make_shared<GpuModel>(find_gpu(like), text);
      state.attention_scale = json.value("attention_scale", 1.0);
      const auto& rates = state.reference->state_->tiles.tflops;
      state.tiles.tflops[std::size_t(GemmType::fp8)] = state.tiles.tflops[std::size_t(GemmType::bf16)] *
                                                       rates[std::size_t(GemmType::fp8)] /
                                                       rates[std::size_t(GemmType::bf16)];
      state.streams = StreamModel(state.reference->state_->streams, gpu.hbm_gb_per_s / find_gpu(like).hbm_gb_per_s);
    }
    state_ = std::make_shared<State>(std::move(state));
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorKind::invalid,
                fmt::format("{}: not a calibration of medley shape bench: {}", source, error.what()));
  }
}

GpuModel GpuModel::named(std::string_view name) {
  const Gpu& gpu = find_gpu(name);
  // Parsed once, on demand: they are large.
  static std::mutex guard;
  static std::map<std::string, GpuModel, std::less<>> known;
  const std::lock_guard lock(guard);
  if (const auto found = known.find(name); found != known.end()) return found->second;
  std::string_view text = embedded_calibration(name);
  // A chip that is also sold with another memory: its products take the same time.
  for (const Gpu& other : all_gpus())
    if (text.empty() && other.sms == gpu.sms && other.boost_mhz == gpu.boost_mhz &&
        other.bf16_tflops == gpu.bf16_tflops && other.measured_tflops == gpu.measured_tflops)
      text = embedded_calibration(other.name);
  return known.emplace(name, text.empty() ? GpuModel(gpu) : GpuModel(gpu, text)).first->second;
}

const Gpu& GpuModel::gpu() const noexcept { return state_->gpu; }
bool GpuModel::calibrated() const noexcept { return state_->calibrated; }
std::string GpuModel::provenance() const { return state_->provenance; }
double GpuModel::peak_tflops(GemmType type) const noexcept { return state_->tiles.tflops[std::size_t(type)]; }
double GpuModel::bandwidth_gb_per_s() const noexcept { return state_->tiles.gb_per_s; }

double GpuModel::grouped_share() const noexcept { return state_->grouped_share; }

double GpuModel::roofline_us(const Gemm& g) const {
  return std::max(g.flops() / peak_tflops(g.type) * 1e-6, g.bytes() / bandwidth_gb_per_s() * 1e-3);
}

namespace {

/// On Hopper fp8 kernels exist only in TN; frameworks transpose the operands first.
Gemm as_run(const Gemm& gemm) {
  Gemm run = gemm;
  if (run.type == GemmType::fp8) run.layout = GemmLayout::TN;
  return run;
}

double corrected(const TileChoice& choice, const Gemm& gemm, const Trees& correction, int sms) {
  if (correction.empty()) return choice.us;
  return choice.us * std::exp(correction.predict(gemm_features(gemm, choice, sms)));
}

/// The same product with every contiguous extent rounded up to `unit` elements.
Gemm aligned(const Gemm& gemm, std::int64_t unit) {
  Gemm round = gemm;
  const auto up = [unit](std::int64_t extent) { return (extent + unit - 1) / unit * unit; };
  round.m = up(gemm.m);
  if (gemm.layout != GemmLayout::NT) round.k = up(gemm.k);
  if (gemm.layout == GemmLayout::NT) round.n = up(gemm.n);
  return round;
}

}  // namespace

namespace {

/// The nearest product that such a table contains: forward, in 16 bits, with aligned extents, one product
/// with all the columns of the batch. Its fp8 rows are not used: they include the quantisation of the input
/// (the collector runs TensorRT-LLM's dynamic path), which a step's schedule lists as a kernel of its own.
Gemm measured_kin(const Gemm& gemm) {
  Gemm kin = gemm;
  const auto up = [](std::int64_t extent) { return (extent + 7) / 8 * 8; };
  kin.layout = GemmLayout::TN;
  if (kin.type == GemmType::fp8) kin.type = GemmType::bf16;
  kin.m = up(gemm.m);
  kin.k = up(gemm.k);
  kin.n = gemm.n * gemm.batch;
  kin.batch = 1;
  return kin;
}

}  // namespace

double GpuModel::predict_us(const Gemm& gemm) const {
  check(gemm);
  const Gemm run = as_run(gemm);
  // Without TMA, misaligned rows leave 45 to 75 % of the rate, on the reference's Hopper kernels 15 to 28 %: the GPU's
  // own shares count (tile_model.cpp), not the reference's.
  if (state_->reference && !state_->gpu.tma() && alignment_class(run) != AlignmentClass::bytes16) {
    const Gemm even = aligned(run, 16 / run.element_bytes());
    const auto own_us = [&](const Gemm& g) { return choose_tile(state_->tiles, state_->gpu.sms, g).us; };
    return predict_us(even) * own_us(run) / own_us(even);
  }
  if (state_->reference) {
    const Gemm near = measured_kin(run);
    if (near.layout != run.layout || near.m != run.m || near.n != run.n || near.k != run.k || near.batch != run.batch ||
        near.type != run.type)
      return predict_us(near) * state_->reference->predict_us(run) / state_->reference->predict_us(near);
  }
  return corrected(choose_tile(state_->tiles, state_->gpu.sms, run), run, state_->correction, state_->gpu.sms);
}

namespace {

/// Dynamic power grows with the clock and the square of a voltage that follows it: the clock goes with about
/// the 0.4th power of the limit.
double slower_by_power(const Gpu& gpu) { return std::pow(gpu.power_share, -0.4); }

}  // namespace

double GpuModel::sustained_us(const Gemm& gemm) const {
  // Power follows the arithmetic rate, and slow misaligned kernels do not reach the limit. On the H200,
  // products back to back for a second took 12 to 20 % longer than in a burst
  // (bench/shape/data/h200_held_out.csv), PyTorch layers 5 to 12 % longer than their parts on another day
  // (h200_validate.csv). Weight gradients (NT) of real layers took 5 % longer again than forward products,
  // and fp8 products with the split accumulator that Transformer Engine uses in backward 7 % longer than
  // without (h200_steps.csv); Blackwell accumulates in f32 anyway. Ampere at 400 W holds its clock better.
  const bool backward = gemm.layout != GemmLayout::TN;
  double throttled_at_peak = state_->gpu.tma() ? 0.18 : 0.02;
  if (state_->gpu.tma() && gemm.layout == GemmLayout::NT) throttled_at_peak += 0.05;
  const bool split = gemm.type == GemmType::fp8 && backward && state_->gpu.architecture == Architecture::hopper;
  const double limited = (1 + throttled_at_peak) * slower_by_power(state_->gpu) - 1;
  const double us = predict_us(gemm) * (split ? 1.07 : 1), share = gemm.flops() / us * 1e-6 / peak_tflops(gemm.type);
  return us * (1 + limited * share * share);
}

GemmTime GpuModel::predict(const Gemm& gemm) const {
  check(gemm);
  const State& s = *state_;
  const Gemm run = as_run(gemm);
  const TileChoice choice = choose_tile(s.tiles, s.gpu.sms, run);
  GemmTime time;
  time.us = predict_us(run);
  time.tflops = run.flops() / time.us * 1e-6;
  time.efficiency = time.tflops / peak_tflops(run.type);
  time.kernel = fmt::format("{}x{} split {}", choice.tile_m, choice.tile_n, choice.split);

  const double ideal = run.flops() / peak_tflops(run.type) * 1e-6;
  TileChoice clean = choice;  // the rest of the loss is computed from the aligned product's own tiles
  if (alignment_class(run) != AlignmentClass::bytes16) {
    const Gemm round = aligned(run, 64);
    clean = choose_tile(s.tiles, s.gpu.sms, round);
    time.lost.alignment = std::max(0.0, time.us - corrected(clean, round, s.correction, s.gpu.sms));
  }
  // The physical model's own parts, scaled to the actual loss besides alignment.
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
  if (state_->reference)
    return state_->reference->attention_us(attention, backward, kernel) * state_->attention_scale *
           slower_by_power(state_->gpu) * state_->reference->peak_tflops(GemmType::bf16) / peak_tflops(GemmType::bf16);
  return state_->attention.us(attention, backward, kernel);
}

double GpuModel::stream_us(StreamOp op, double bytes) const { return state_->streams.us(op, bytes); }

}  // namespace medley::cost
