// A config.json in one line of `key=value` words, as tables of models hold them. Used by the zoo and by
// tests.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace medley::model {

/// Dots in a key reach into nested objects. `layer_types=WF` stands for the list of its layers' names,
/// repeated: F full_attention, W sliding_attention, L linear_attention; num_hidden_layers must be there, too.
nlohmann::json config_from_text(const std::string& words);

}  // namespace medley::model
