// What a search for a step's routes found, as the table records it. Used by the step tuner.
#pragma once

#include <string>
#include <vector>

#include "route/tuned_step.hpp"
#include "tune/step.hpp"
#include "tune/step_search.hpp"

namespace medley::tune {

/// The verdict's routes and times, with those of the libraries and pairs of these names. Leaves open which step it was,
/// and whether that is settled.
route::TunedStep tuned_step_of(const StepSearch& search, const StepVerdict& verdict, const std::vector<StepSlot>& slots,
                               const std::vector<std::string>& libraries);

}  // namespace medley::tune
