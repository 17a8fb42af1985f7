#include "shape/search_shapes.hpp"

#include <chrono>

#include "shape/rules.hpp"

namespace medley::shape {

SearchReport search_shapes(const SearchRequest& request) {
  SearchReport report{.model = {}, .gpu = GpuModel::named(request.gpu), .bounds = request.bounds, .found = {}};
  report.model = shape_model(request.model, request.as);
  const Workload work = workload_of(request, report.model);
  const auto start = std::chrono::steady_clock::now();
  report.found = search(report.gpu, report.model, work, request.bounds, request.threads, request.progress);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

nlohmann::ordered_json to_json(const SearchReport& report) {
  using Json = nlohmann::ordered_json;
  const bool calibrated = report.gpu.calibrated();
  const auto candidate = [&](const Candidate& c) -> Json {
    return {{"hidden", c.hidden},
            {"heads", c.heads},
            {"kv_heads", c.kv_heads},
            {"head_dim", c.head_dim},
            {"layers", c.layers},
            {"ffn", c.ffn},
            {"vocab", c.vocab},
            {"parameters_change", c.parameters},
            {"gain", calibrated ? Json(c.gain) : Json()},
            {"gain_text", gain_text(c.gain, calibrated)},
            {"tflops", c.tflops},
            {"efficiency", c.efficiency}};
  };
  Json pareto = Json::array();
  for (const Candidate& c : report.found.pareto) pareto.push_back(candidate(c));
  return {{"model", report.model.name},
          {"gpu", report.gpu.gpu().name},
          {"calibrated", calibrated},
          {"candidates", report.found.candidates},
          {"products", report.found.products},
          {"seconds", report.seconds},
          {"bounds",
           {{"parameters", report.bounds.parameters},
            {"depth", report.bounds.depth},
            {"aspect", report.bounds.aspect},
            {"ffn_ratio", report.bounds.ffn_ratio}}},
          {"given", candidate(report.found.given)},
          {"pareto", std::move(pareto)},
          {"fastest", candidate(report.found.fastest)},
          {"best_per_parameter", candidate(report.found.best_net)},
          {"quality", "not predicted"}};
}

}  // namespace medley::shape
