// What a model family fixes besides the numbers of its config, and where those numbers are: the table
// families.txt. Shared by the zoo and the readers, so that a family is described once.
#pragma once

#include <string_view>

#include "model/config.hpp"
#include "model/model.hpp"

namespace medley::model {

/// Sets the fields of `model` that the family fixes at every size; false for an unknown family.
bool apply_family(Model& model, std::string_view family);
/// The model that `config` describes, read as `family`, which must be known.
Model model_of_family(std::string_view family, const Config& config);
bool known_family(std::string_view name);
/// Names of all known families, for error messages.
std::string known_families();
/// The known family most similar to `config` of an unknown one: by name, else by its keys.
std::string nearest_family(std::string_view name, const Config& config);

}  // namespace medley::model
