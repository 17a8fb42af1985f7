// A route table: the times of every cell, when fusion pays, and the whole step that it was tuned for. The runtime's own
// reader checks it.
#include <fmt/format.h>

#include "report/formats.hpp"
#include "route/table.hpp"

namespace medley::report {
namespace {

Json timing_json(const std::string& backend, const auto& timing) {
  return {{"backend", backend},
          {"median_us", timing.median_us},
          {"low_us", timing.low_us},
          {"high_us", timing.high_us},
          {"samples", timing.samples}};
}

Json shape_json(const route::Shape& shape) {
  return {{"hosts", shape.hosts}, {"ranks_per_host", shape.ranks_per_host}};
}

Json cell_json(const route::Cell& cell) {
  Json routes = Json::array();
  for (const route::Timing& timing : cell.routes) {
    routes.push_back(timing_json(timing.route.backend, timing));
    routes.back()["algorithm"] = timing.route.algorithm;
  }
  Json out = {{"op", name(cell.key.op)}, {"bytes", cell.key.bytes}};
  out.update(shape_json(cell.key.shape));
  out.update({{"memory", name(cell.key.memory)},
              {"dtype", name(cell.key.dtype)},
              {"confidence", cell.confidence},
              {"routes", std::move(routes)}});
  return out;
}

Json fusion_json(const route::FusionRow& row) {
  Json out = shape_json(row.shape);
  out.update({{"memory", name(row.memory)}, {"limit", row.limit()}, {"sizes", Json::array()}});
  for (const route::FusionTiming& size : row.sizes)
    out["sizes"].push_back({{"bytes", size.bytes}, {"separate_us", size.separate_us}, {"fused_us", size.fused_us}});
  return out;
}

Json step_json(const route::TunedStep& step) {
  Json out = shape_json(step.shape);
  out.update({{"step", step.name},
              {"memory", name(step.memory)},
              {"library", step.library},
              {"gain", step.gain},
              {"gain_low", step.gain_low},
              {"gain_high", step.gain_high},
              {"confidence", step.confidence},
              {"settled", step.settled},
              {"times", Json::array()},
              {"routes", Json::array()}});
  out["times"].push_back(timing_json("auto", step.chosen));
  for (const route::StepTiming& library : step.libraries) out["times"].push_back(timing_json(library.name, library));
  for (const route::StepRoute& route : step.routes)
    out["routes"].push_back({{"op", name(route.op)},
                             {"from", route.from},
                             // JavaScript's numbers end before it
                             {"to", route.to == INT64_MAX ? Json() : Json(route.to)},
                             {"backend", route.route.backend},
                             {"algorithm", route.route.algorithm}});
  return out;
}

}  // namespace

Json read_routes(const Node& file) {
  file.at("cells");
  const route::Table table = route::Table::parse(file.whole().dump(), "of this file");
  std::string machine = fmt::format("{}, {} cores", table.machine.cpu, table.machine.cores);
  if (!table.machine.gpu.empty()) machine += ", " + table.machine.gpu;
  if (!table.machine.fabric.empty()) machine += ", " + table.machine.fabric;
  Json out = {{"machine", machine}, {"cells", Json::array()}, {"fusion", Json::array()}};
  for (const route::Cell& cell : table.cells()) out["cells"].push_back(cell_json(cell));
  for (const route::FusionRow& row : table.fusion()) {
    if (row.backend.empty()) out["fusion"].push_back(fusion_json(row));  // what calls take that name no backend
  }
  out["tuned"] = table.step ? step_json(*table.step) : Json();
  return out;
}

}  // namespace medley::report
