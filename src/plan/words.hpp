// Imports the names of src/model into medley::plan: every plan uses models, layouts and counts.
#pragma once

#include "model/layout.hpp"

namespace medley::plan {
using namespace model;
using model::product;  // not the reductions of those names
using model::sum;
}  // namespace medley::plan
