// Hugging Face config.json: finds the transformer in it and reads it with the table of families.
#include <fmt/format.h>

#include "model/families.hpp"
#include "model/read_model.hpp"

namespace medley::model {
namespace {

/// Vision-language and other wrappers keep the transformer one level down.
const nlohmann::json* inner_config(const nlohmann::json& config) {
  for (const char* key : {"text_config", "language_config", "llm_config", "thinker_config"})
    if (config.contains(key) && config[key].is_object()) return &config[key];
  return nullptr;
}

}  // namespace

Model model_from_huggingface(const nlohmann::json& json, const std::string& source, const std::string& as) {
  const Config config(json, source);
  const std::string family = config.text("model_type");
  const nlohmann::json* inner = inner_config(json);
  if (inner && (!known_family(family) || !config.has("num_hidden_layers")))
    return model_from_huggingface(*inner, source, as);
  if (!as.empty() && !known_family(as))
    refuse_at("--as", fmt::format("family '{}' is not known; it must be one of {}", as, known_families()));
  const std::string& read_as = as.empty() ? family : as;
  if (read_as.empty()) refuse_at(source, "model_type is missing; it must be one of " + known_families());
  if (!known_family(read_as))
    refuse_at(source, fmt::format("model_type '{0}' is not known; the nearest known family is {1}: --as {1} "
                                  "tries it. Known are {2}",
                                  family, nearest_family(family, config), known_families()));
  Model m = model_of_family(read_as, config);
  check(m, source);
  return m;
}

}  // namespace medley::model
