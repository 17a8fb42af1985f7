// A config.json in one line of `key=value` words, the format of the tables of models. Used by the zoo and by
// tests.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace medley::model {

/// Dots in a key select nested objects. `layer_types=WF` means the list of its layers' names, repeated: F
/// full_attention, W sliding_attention, L linear_attention; it also needs num_hidden_layers.
nlohmann::json config_from_text(const std::string& words);

}  // namespace medley::model
