#include "model/config_text.hpp"

#include <fmt/format.h>

#include <sstream>

#include "model/text.hpp"

namespace medley::model {
namespace {

using Json = nlohmann::json;

Json value_of(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  if (text == "null") return nullptr;
  const bool number = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return number ? Json(parse_count(text, "config", text)) : Json(text);
}

void expand_layer_types(Json& config) {
  for (auto& [key, value] : config.items())
    if (value.is_object()) expand_layer_types(value);
  if (!config.contains("layer_types")) return;
  const std::string letters = config["layer_types"].get<std::string>();
  const Count layers = config.value("num_hidden_layers", Count{0});
  Json list = Json::array();
  for (Count i = 0; i < layers && !letters.empty(); ++i) {
    const char letter = letters[static_cast<std::size_t>(i) % letters.size()];
    list.push_back(letter == 'W' ? "sliding_attention" : letter == 'L' ? "linear_attention" : "full_attention");
  }
  config["layer_types"] = std::move(list);
}

}  // namespace

Json config_from_text(const std::string& text) {
  Json config = Json::object();
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const auto equals = word.find('=');
    if (equals == std::string::npos) refuse_at("config", fmt::format("'{}' is not key=value", word));
    Json* place = &config;
    for (const std::string& part : split(word.substr(0, equals), '.')) place = &(*place)[part];
    *place = value_of(word.substr(equals + 1));
  }
  expand_layer_types(config);
  return config;
}

}  // namespace medley::model
