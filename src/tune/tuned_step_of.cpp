#include "tune/tuned_step_of.hpp"

#include <algorithm>

#include "tune/cell_statistics.hpp"

namespace medley::tune {
namespace {

route::StepTiming step_timing(const std::string& name, const std::vector<double>& us) {
  const route::Timing timing = timing_of({}, us);
  return {name, timing.median_us, timing.low_us, timing.high_us, timing.samples};
}

/// Adjacent slots of one operation with one route are one range.
std::vector<route::StepRoute> ranges_of(const std::vector<StepSlot>& slots, const std::vector<Choice>& routes) {
  std::vector<route::StepRoute> ranges;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const StepSlot& slot = slots[i];
    route::StepRoute* last = ranges.empty() ? nullptr : &ranges.back();
    if (last && last->op == slot.op && last->dtype == slot.dtype && last->shape == slot.shape &&
        last->route == routes[i]) {
      last->to = slot.to;
    } else {
      ranges.push_back({slot.op, slot.dtype, slot.shape, slot.from, slot.to, routes[i]});
    }
  }
  return ranges;
}

}  // namespace

route::TunedStep tuned_step_of(const StepSearch& search, const StepVerdict& verdict, const std::vector<StepSlot>& slots,
                               const std::vector<std::string>& libraries) {
  route::TunedStep out;
  out.chosen = step_timing("auto", verdict.chosen_us);
  if (verdict.chosen->library) out.library = verdict.chosen->assignment.name;
  if (verdict.library) out.against = verdict.library->assignment.name;
  out.gain = verdict.gain, out.gain_low = verdict.gain_low, out.gain_high = verdict.gain_high;
  out.confidence = verdict.confidence;
  out.routes = ranges_of(slots, verdict.chosen->assignment.routes);
  for (const StepCandidate& one : search.candidates()) {
    const std::string& name = one.assignment.name;
    if (one.us.empty() || std::find(libraries.begin(), libraries.end(), name) == libraries.end()) continue;
    out.libraries.push_back(step_timing(name, &one == verdict.library ? verdict.library_us
                                              : one.fresh_us.empty()  ? one.us
                                                                      : one.fresh_us));
  }
  std::stable_sort(out.libraries.begin(), out.libraries.end(),
                   [](const auto& a, const auto& b) { return a.median_us < b.median_us; });
  return out;
}

}  // namespace medley::tune
