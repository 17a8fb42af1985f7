// Models known by name (zoo.csv and zoo_configs.txt, compiled in): `medley plan --model llama-2-7b`. Used by
// read_model, by the shape advisor and by tests of parameter counts.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "model/model.hpp"

namespace medley::model {

/// All models, in table order.
const std::vector<Model>& zoo();
/// The model of that name (ignoring case and `_` versus `-`), or nothing.
std::optional<Model> model_from_zoo(std::string_view name);

}  // namespace medley::model
