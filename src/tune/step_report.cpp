#include "tune/step_report.hpp"

#include <fmt/format.h>

namespace medley::tune {
namespace {

/// What a user can do about an answer that is not final.
std::string how_to_settle(const route::TunedStep& step) {
  if (step.settled) return {};
  const std::string how_long =
      step.needed_s > 0 ? fmt::format("about {:.0f} s would settle it", step.needed_s) : "more time may settle it";
  return fmt::format("; not settled: {}, and the same command continues", how_long);
}

}  // namespace

std::string conclusion(const route::TunedStep& step) {
  const route::StepTiming* best = step.best_library();
  const std::string against = best ? best->name : "";
  if (step.library.empty()) {
    return fmt::format("the mix is {:.2f}x as fast as {}, the best library (95 % interval {:.2f} to {:.2f}){}",
                       step.gain, against, step.gain_low, step.gain_high, how_to_settle(step));
  }
  if (!step.settled)
    return fmt::format("no mix was surely faster in this time, so auto is {}, the best library so far{}", step.library,
                       how_to_settle(step));
  return fmt::format("no mix is faster than {}, so auto is that library", step.library);
}

}  // namespace medley::tune
