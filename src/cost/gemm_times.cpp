#include "cost/gemm_times.hpp"

#include "cost/calibration.hpp"
#include "cost/gemm_csv.hpp"

namespace medley::cost {
namespace {

GemmTime time_of(const GpuModel& model, const Gemm& called, bool sustained) {
  GemmTime time = model.predict(called);
  if (sustained) {
    const double slower = model.sustained_us(called) / time.us;
    time.us *= slower;
    time.tflops /= slower;
    time.efficiency /= slower;
  }
  return time;
}

}  // namespace

GemmTimesResult gemm_times(const GemmTimesRequest& request) {
  const GpuModel model = request.calibration.empty() ? GpuModel::named(request.gpu)
                                                     : calibrated_model(find_gpu(request.gpu), request.calibration);
  GemmTimesResult result{.gpu = request.gpu,
                         .sustained = request.sustained,
                         .calibrated = model.calibrated(),
                         .provenance = model.provenance(),
                         .rows = {}};
  for (const Gemm& given : read_gemm_csv(request.file)) {
    const Gemm called = request.column_major ? given : called_for_rows(given);
    result.rows.push_back({given, time_of(model, called, request.sustained)});
  }
  return result;
}

nlohmann::ordered_json to_json(const GemmLosses& lost) {
  return {{"alignment", lost.alignment},
          {"tile", lost.tile},
          {"wave", lost.wave},
          {"memory", lost.memory},
          {"launch", lost.launch}};
}

nlohmann::ordered_json to_json(const GemmTimesResult& result) {
  auto rows = nlohmann::ordered_json::array();
  for (const auto& [gemm, time] : result.rows)
    rows.push_back({{"m", gemm.m},
                    {"n", gemm.n},
                    {"k", gemm.k},
                    {"batch", gemm.batch},
                    {"layout", name(gemm.layout)},
                    {"type", name(gemm.type)},
                    {"predicted_us", time.us},
                    {"tflops", time.tflops},
                    {"efficiency", time.efficiency},
                    {"lost_to", time.lost_to()},
                    {"lost_us", to_json(time.lost)},
                    {"kernel", time.kernel}});
  return {{"gpu", result.gpu},
          {"sustained", result.sustained},
          {"calibrated", result.calibrated},
          {"model", result.provenance},
          {"rows", std::move(rows)}};
}

}  // namespace medley::cost
