// Imports the names of src/plan and src/model into medley::cost: costs are those of schedules.
#pragma once

#include "plan/schedule.hpp"

namespace medley::cost {
using namespace plan;
using model::product;  // not the reductions of those names
using model::sum;
}  // namespace medley::cost
