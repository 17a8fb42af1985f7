// What a model family fixes beyond the numbers of its config: norms, biases, positions, tying.
// Shared by the zoo and the readers, so that a family is described once.
#pragma once

#include <string_view>

#include "model/model.hpp"

namespace medley::model {

/// Sets the family's habits on `model`; returns false for a family that is not known.
bool apply_family(Model& model, std::string_view family);
/// Names of all known families, for error messages.
std::string known_families();

}  // namespace medley::model
