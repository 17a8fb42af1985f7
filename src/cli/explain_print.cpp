#include "cli/explain_print.hpp"

#include <fmt/format.h>

#include "cli/sizes.hpp"
#include "cli/table.hpp"
#include "tune/step_report.hpp"

namespace medley::cli {
namespace {

/// A low confidence matters little where the second is as fast.
std::string lead_of_first(const std::vector<tune::ExplainedRoute>& routes) {
  if (routes.size() < 2) return "";
  return fmt::format("; the next takes {:.1f} % longer",
                     100 * (routes[1].timing.median_us / routes[0].timing.median_us - 1));
}

std::string against_library(const tune::ExplainedOperation& one) {
  if (one.same_as_library) return "the same";
  if (one.alone_us <= 0 || one.library_us <= 0) return "-";
  return fmt::format("{:.2f}x", one.library_us / one.alone_us);
}

}  // namespace

void print(const tune::Explanation& answer, const std::string& path) {
  fmt::print("{} of {} bytes, {} memory, {}\ntable {} ({}), measured on {}\n\n", name(answer.asked.op),
             answer.asked.bytes, name(answer.asked.memory), route::text(answer.shape), path, answer.table_hash,
             answer.measured_on);
  if (!answer.found) {
    fmt::print("no row: the built-in order counts, {}\n",
               answer.asked.memory == Memory::cuda
                   ? "nccl, or the first backend that moves CUDA memory"
                   : "shm inside a host, between hosts a pair or the first backend of the context");
    return;
  }
  fmt::print("route: {}/{}\n", answer.route.backend, answer.route.algorithm);
  for (const std::string& line : answer.why) fmt::print("  {}\n", line);
  if (answer.routes.empty()) return;
  fmt::print("  confidence that the row's first is the fastest: {:.1f} %{}\n\n", 100 * answer.confidence,
             lead_of_first(answer.routes));
  Table rows({"", "route", "median µs", "95 % interval", "samples", "against the route"});
  for (const auto& [timing, slower, taken] : answer.routes) {
    rows.add({taken ? "*" : "", timing.route.backend + "/" + timing.route.algorithm,
              fmt::format("{:.2f}", timing.median_us), fmt::format("{:.2f} to {:.2f}", timing.low_us, timing.high_us),
              fmt::format("{}", timing.samples), taken ? "" : fmt::format("{:+.1f} %", 100 * (slower - 1))});
  }
  fmt::print("{}", rows.str());
}

void print(const tune::StepExplanation& answer, const std::string& path) {
  fmt::print("{}\ntable {} ({}), measured on {}\n\n", answer.name, path, answer.table_hash, answer.measured_on);
  const std::string library = answer.library.empty() ? "the best library" : answer.library;
  Table rows({"op", "dtype", "shape", "bytes", "count", "route", "by", "alone µs", "over " + library + " µs",
              "against it", "sure"});
  for (const tune::ExplainedOperation& one : answer.operations) {
    const tune::StepOperation& o = one.operation;
    rows.add({std::string(name(o.op)), std::string(name(o.dtype)),
              fmt::format("{} x {}", o.shape.hosts, o.shape.ranks_per_host), size_text(o.bytes),
              std::to_string(o.count), one.route ? one.route->backend + "/" + one.route->algorithm : "built-in order",
              !one.route    ? ""
              : one.by_step ? "the step"
                            : "itself",
              one.alone_us > 0 ? fmt::format("{:.1f}", one.alone_us) : "-",
              one.library_us > 0 ? fmt::format("{:.1f}", one.library_us) : "-", against_library(one),
              one.confidence > 0 ? fmt::format("{:.0f} %", 100 * one.confidence) : ""});
  }
  fmt::print("{}\n", rows.str());
  if (!answer.tuned) {
    fmt::print("{}\n", answer.note);
    return;
  }
  const route::TunedStep& tuned = *answer.tuned;
  fmt::print("the whole step, {}: auto {:.1f} µs ({:.1f} to {:.1f})", route::text(tuned.shape), tuned.chosen.median_us,
             tuned.chosen.low_us, tuned.chosen.high_us);
  for (const route::StepTiming& one : tuned.libraries) fmt::print(", {} {:.1f}", one.name, one.median_us);
  fmt::print("\n{}; confidence {:.1f} %\n", tune::conclusion(tuned), 100 * tuned.confidence);
}

}  // namespace medley::cli
