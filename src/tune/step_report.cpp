#include "tune/step_report.hpp"

#include <fmt/format.h>

#include "route/choose.hpp"

namespace medley::tune {
namespace {

/// What a user can do about an answer that is not final.
std::string how_to_settle(const route::TunedStep& step) {
  if (step.settled) return {};
  return step.needed_s > 0 ? fmt::format("; not settled: --seconds {:.0f} would", step.needed_s)
                           : "; not settled: more time may settle it";
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
  return fmt::format("no mix gains more than {:.0f} % over {}, so auto is that library", 100 * (route::near_ratio - 1),
                     step.library);
}

}  // namespace medley::tune
