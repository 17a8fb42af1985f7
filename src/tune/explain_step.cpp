#include "tune/explain_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "route/choose.hpp"
#include "route/pair_name.hpp"
#include "tune/cell_statistics.hpp"
#include "tune/step_report.hpp"

namespace medley::tune {
namespace {

/// The rows of operations alone, without the step that the table was tuned for.
route::Table without_step(const route::Table& table) {
  route::Table cells = table;
  cells.step.reset();
  return cells;
}

/// By what the operation's comm can take.
route::Chosen chosen_for(const route::Table& table, const StepOperation& o, Memory memory) {
  const Op op = route::routed_as(o.op);
  return route::choose(table, op, memory, route::class_of(op, o.dtype), o.shape,
                       [&](const Choice& route) { return takes(o.shape, o.in_blocks, route.backend); });
}

const route::Cell* row_of(const route::Table& cells, const StepOperation& o, Memory memory) {
  const route::Chosen chosen = chosen_for(cells, o, memory);
  return route::nearest_size(chosen.cells, o.bytes);
}

/// Of the libraries that every row has, the one whose operations alone take the least time together; empty: none.
std::string least_sum(const route::Table& cells, const std::vector<StepOperation>& operations, Memory memory) {
  std::map<std::string, double> sums;
  std::map<std::string, std::size_t> rows;
  for (const StepOperation& operation : operations) {
    const route::Cell* row = row_of(cells, operation, memory);
    if (!row) continue;
    for (const route::Timing& timing : row->routes) {
      if (timing.route.algorithm != "native" || route::is_made_of_two(timing.route.backend)) continue;
      sums[timing.route.backend] += static_cast<double>(operation.count) * timing.median_us;
      ++rows[timing.route.backend];
    }
  }
  std::size_t most = 0;
  for (const auto& [library, count] : rows) most = std::max(most, count);
  std::string best;
  double least = INFINITY;
  for (const auto& [library, sum] : sums) {
    if (rows[library] == most && sum < least) best = library, least = sum;
  }
  return best;
}

ExplainedOperation explained(const route::Table& table, const route::Table& cells, const StepOperation& o,
                             Memory memory, const std::string& library) {
  ExplainedOperation out{.operation = o};
  const route::Chosen chosen = chosen_for(table, o, memory);
  if (const route::SizeRange* range = chosen.at(o.bytes)) out.route = range->route;
  out.by_step = chosen.by_step;
  if (!out.route) return out;
  const Choice of_library = own_route(library, o);
  out.same_as_library = *out.route == of_library;
  const route::Cell* row = row_of(cells, o, memory);
  if (!row) return out;
  const route::Timing *taken = row->find(*out.route), *own = row->find(of_library);
  if (taken) out.alone_us = taken->median_us;
  if (own) out.library_us = own->median_us;
  if (taken && own && taken != own)
    out.confidence = taken->median_us <= own->median_us ? confidence_of(*taken, *own) : confidence_of(*own, *taken);
  return out;
}

/// Why the table's step is not the one asked for; empty: it is.
std::string why_other_step(const route::TunedStep& tuned, const std::string& name, const std::string& hash,
                           Memory memory) {
  if (tuned.memory != memory)
    return fmt::format("{} on {} memory, not {}", tuned.name, medley::name(tuned.memory), medley::name(memory));
  if (tuned.operations == hash) return {};
  if (tuned.name != name) return fmt::format("another step ({})", tuned.name);
  return fmt::format("{} on {}, and the operations, their sizes or the computation differ", name,
                     route::text(tuned.shape));
}

}  // namespace

StepExplanation explain_step(const route::Table& table, const std::string& name,
                             const std::vector<StepOperation>& operations, const std::string& hash, Memory memory) {
  StepExplanation out{.name = name, .table_hash = table.hash(), .measured_on = table.machine.cpu, .library = {}};
  if (!table.step) {
    out.note = "the table is of single operations; medley tune --for this step measures it under load";
  } else if (const std::string other = why_other_step(*table.step, name, hash, memory); !other.empty()) {
    out.note = fmt::format("the table was tuned for {}; medley tune --for this one measures it", other);
  } else {
    out.tuned = table.step;
  }
  const route::Table cells = without_step(table);
  const route::StepTiming* best = out.tuned ? out.tuned->best_library() : nullptr;
  out.library_by_step = best != nullptr;
  out.library = best ? best->name : least_sum(cells, operations, memory);
  for (const StepOperation& operation : operations)
    out.operations.push_back(explained(table, cells, operation, memory, out.library));
  return out;
}

nlohmann::ordered_json to_json(const StepExplanation& e) {
  nlohmann::ordered_json out{
      {"step", e.name}, {"table", e.table_hash}, {"library", e.library}, {"rows", nlohmann::ordered_json::array()}};
  for (const ExplainedOperation& one : e.operations) {
    const StepOperation& o = one.operation;
    nlohmann::ordered_json row{{"op", name(o.op)},
                               {"dtype", name(o.dtype)},
                               {"bytes", o.bytes},
                               {"count", o.count},
                               {"hosts", o.shape.hosts},
                               {"ranks_per_host", o.shape.ranks_per_host},
                               {"reason", !one.route    ? "fallback"
                                          : one.by_step ? "step"
                                                        : "table"}};
    if (one.route) row["route"] = {{"backend", one.route->backend}, {"algorithm", one.route->algorithm}};
    if (one.alone_us > 0) row["alone_us"] = one.alone_us;
    if (one.library_us > 0) row["library_us"] = one.library_us;
    if (one.confidence > 0) row["confidence"] = one.confidence;
    out["rows"].push_back(std::move(row));
  }
  if (!e.tuned) {
    out["note"] = e.note;
    return out;
  }
  const route::TunedStep& tuned = *e.tuned;
  out["auto_us"] = tuned.chosen.median_us;
  for (const route::StepTiming& timing : tuned.libraries) out["step_us"][timing.name] = timing.median_us;
  out["gain"] = {{"median", tuned.gain}, {"low", tuned.gain_low}, {"high", tuned.gain_high}};
  out["confidence"] = tuned.confidence;
  out["settled"] = tuned.settled;
  out["conclusion"] = conclusion(tuned);
  return out;
}

}  // namespace medley::tune
