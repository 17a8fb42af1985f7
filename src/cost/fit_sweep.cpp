#include "cost/fit_sweep.hpp"

#include <array>
#include <map>

#include "cost/tile_model.hpp"

namespace medley::cost {
namespace {

std::string alignment_text(const Gemm& gemm) {
  constexpr std::array<const char*, 4> classes{"2-byte rows", "4-byte rows", "8-byte rows", "16-byte rows and more"};
  return classes[std::size_t(alignment_class(gemm))];
}

std::vector<FitRow> rows_by_group(const GpuModel& model, const std::vector<MeasuredGemm>& samples) {
  std::map<std::string, std::vector<MeasuredGemm>> by_group;
  for (const auto& sample : samples) {
    by_group["all"].push_back(sample);
    by_group["alignment: " + alignment_text(sample.gemm)].push_back(sample);
    by_group["layout: " + std::string(name(sample.gemm.layout))].push_back(sample);
    by_group["type: " + std::string(name(sample.gemm.type))].push_back(sample);
    by_group[sample.gemm.batch > 1 ? "batched" : "single"].push_back(sample);
    by_group[sample.us < 20    ? "time: under 20 us"
             : sample.us < 200 ? "time: 20 to 200 us"
                               : "time: over 200 us"]
        .push_back(sample);
    if (!sample.gemm.name.empty()) by_group["family: " + sample.gemm.name.substr(0, 1)].push_back(sample);
  }
  std::vector<FitRow> rows;
  for (const auto& [group, members] : by_group) {
    std::vector<double> roofline;
    for (const auto& sample : members) roofline.push_back(model.roofline_us(sample.gemm));
    rows.push_back({group, accuracy(model, members), accuracy(roofline, members)});
  }
  return rows;
}

}  // namespace

FitResult fit_sweep(const FitRequest& request) {
  const Gpu& gpu = find_gpu(request.gpu);
  const auto samples = read_sweep(request.sweep);
  std::vector<MeasuredGemm> seen, unseen;
  for (const auto& sample : samples) (held_out(sample.gemm) ? unseen : seen).push_back(sample);
  CalibrationInputs inputs = describe_sweep(request.sweep);
  inputs.source = request.source;
  inputs.like = request.like;
  inputs.attention_scale = request.attention_scale;
  const GpuModel half(gpu, calibrate(gpu, seen, inputs).dump());
  FitResult result{.gpu = request.gpu, .rows = rows_by_group(half, unseen), .calibration = {}};
  if (request.calibrate) {
    inputs.held_out_error = accuracy(half, unseen).mape;
    inputs.attention_csv = request.attention;
    inputs.stream_csv = request.streams;
    result.calibration = calibrate(gpu, samples, inputs);
  }
  return result;
}

nlohmann::ordered_json to_json(const FitResult& result) {
  auto rows = nlohmann::ordered_json::array();
  for (const auto& [group, fitted, roofline] : result.rows)
    rows.push_back({{"group", group},
                    {"count", fitted.count},
                    {"mape", fitted.mape},
                    {"p95", fitted.p95},
                    {"worst", fitted.worst},
                    {"roofline_mape", roofline.mape},
                    {"roofline_p95", roofline.p95}});
  return {{"gpu", result.gpu}, {"rows", std::move(rows)}};
}

}  // namespace medley::cost
