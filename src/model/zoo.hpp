// Models known by name (zoo.csv and zoo_configs.txt, compiled in): `medley plan --model llama-2-7b`.
// Used by read_model, by the shape adviser and by tests that check parameter counts.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "model/model.hpp"

namespace medley::model {

/// All of them, in the order of the table.
const std::vector<Model>& zoo();
/// The model of that name (case and `_` against `-` don't matter), or nothing.
std::optional<Model> model_from_zoo(std::string_view name);

}  // namespace medley::model
