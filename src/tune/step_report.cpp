#include "tune/step_report.hpp"

#include <fmt/format.h>

namespace medley::tune {

std::string conclusion(const route::TunedStep& step) {
  const route::StepTiming* best = step.best_library();
  const std::string against = best ? best->name : step.libraries.empty() ? "" : step.libraries.front().name;
  if (step.library.empty()) {
    return fmt::format("the mix is {:.2f}x as fast as {}, the best library (95 % interval {:.2f} to {:.2f})", step.gain, against,
                       step.gain_low, step.gain_high);
  }
  if (!step.settled) {
    return fmt::format("no mix was surely faster in this time, so auto is {}, the best library so far; the same command continues", step.library);
  }
  return fmt::format("no mix is faster than {}, so auto is that library", step.library);
}

}  // namespace medley::tune
