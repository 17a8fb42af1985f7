// The words of src/model inside medley::plan: every plan speaks of models, layouts and counts.
#pragma once

#include "model/layout.hpp"

namespace medley::plan {
using namespace model;
using model::product;  // not the reductions of those names
using model::sum;
}  // namespace medley::plan
