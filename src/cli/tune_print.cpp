#include "cli/tune_print.hpp"

#include <fmt/format.h>

#include "cli/sizes.hpp"
#include "cli/table.hpp"
#include "compress/spec.hpp"
#include "route/choose.hpp"
#include "tune/step_report.hpp"

namespace medley::cli {
namespace {

std::string size_of_border(std::int64_t bytes) { return bytes == INT64_MAX ? "on" : size_text(bytes); }

std::string route_text(const Choice& route) {
  return route.backend + (compress::is_compressed(route.algorithm) ? "" : "/") + route.algorithm;
}

/// At the size where it leads most.
std::string against_rival(const tune::Winner& winner) {
  if (winner.ahead <= 0) return "";
  const std::string rival = route_text(winner.rival);
  if (winner.ahead > route::near_ratio) return fmt::format("up to {:.2f}x as fast as {}", winner.ahead, rival);
  if (winner.ahead >= 1 / route::near_ratio) return fmt::format("as fast as {}", rival);
  return fmt::format("slower alone than {}", rival);
}

/// One table per shape: a line per size range that one route wins.
std::string winners_text(const route::Table& table) {
  Table lines({"shape", "memory", "op", "dtype", "from", "to", "route", "against the best other backend"});
  for (const tune::Winner& w : tune::winners(table)) {
    lines.add({fmt::format("{} x {}", w.shape.hosts, w.shape.ranks_per_host), std::string(name(w.memory)),
               std::string(name(w.op)), std::string(name(w.dtype)), size_of_border(w.from), size_of_border(w.to),
               route_text(w.route), against_rival(w)});
  }
  return lines.str();
}

std::string with_interval(const route::StepTiming& timing) {
  return fmt::format("{:.1f} to {:.1f}", timing.low_us, timing.high_us);
}

/// The step over every library and over the routes chosen, and what that means.
std::string step_text(const route::TunedStep& step) {
  Table times({"step over", "median µs", "95 % interval", "samples", "against auto"});
  times.add({"auto", fmt::format("{:.1f}", step.chosen.median_us), with_interval(step.chosen),
             std::to_string(step.chosen.samples), ""});
  for (const route::StepTiming& one : step.libraries) {
    times.add({one.name, fmt::format("{:.1f}", one.median_us), with_interval(one), std::to_string(one.samples),
               fmt::format("{:.2f}x", one.median_us / step.chosen.median_us)});
  }
  Table routes({"shape", "op", "dtype", "from", "to", "route"});
  for (const route::StepRoute& r : step.routes) {
    routes.add({fmt::format("{} x {}", r.shape.hosts, r.shape.ranks_per_host), std::string(name(r.op)),
                std::string(name(r.dtype)), size_of_border(r.from), size_of_border(r.to),
                r.route.backend + "/" + r.route.algorithm});
  }
  return fmt::format("{} on {}\n{}\n{}\n{}\n", step.name, route::text(step.shape), times.str(), routes.str(),
                     tune::conclusion(step));
}

}  // namespace

std::string text_of(const tune::TuneResult& result) {
  return fmt::format("{}{}\n{}: {} cells, {} of them new; hash {}\n{}",
                     result.table.step ? step_text(*result.table.step) + "\n" : "", winners_text(result.table),
                     result.file.string(), result.table.cells().size(), result.new_cells, result.table.hash(),
                     result.advice.empty() ? "" : result.advice + "\n");
}

}  // namespace medley::cli
