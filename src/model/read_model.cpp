#include "model/read_model.hpp"

#include <fmt/format.h>

#include <medley/error.hpp>

#include "base/closest.hpp"
#include "model/zoo.hpp"

namespace medley::model {
namespace {

std::string nearest(const std::string& name) {
  std::string found;
  for (const Model& m : zoo()) {
    if (m.name.rfind(name.substr(0, 4), 0) == 0) found += (found.empty() ? "" : ", ") + m.name;
  }
  if (!found.empty()) return found;
  std::vector<std::string> names;
  for (const Model& m : zoo()) names.push_back(m.name);
  const std::string alike = closest(name, names);
  return (alike.empty() ? "llama-2-7b, gpt3-175b" : alike) + " and more, see medley list models" +
         did_you_mean(name, names);
}

}  // namespace

nlohmann::json parse_json(const std::string& text, const std::string& source) {
  try {
    // Comments are common in ds_config files. This check bounds the depth: deep nesting would exhaust the
    // stack.
    int depth = 0, deepest = 0;
    for (const char c : text) {
      if (c == '{' || c == '[') deepest = std::max(deepest, ++depth);
      if (c == '}' || c == ']') --depth;
    }
    if (deepest > 64) refuse_at(source, "is nested more than 64 deep; that is no configuration");
    nlohmann::json value = nlohmann::json::parse(text, nullptr, true, true);
    if (!value.is_object()) refuse_at(source, "is not a JSON object");
    return value;
  } catch (const nlohmann::json::parse_error& error) {
    refuse_at(source, fmt::format("is not JSON: byte {} is unexpected", error.byte));
  } catch (const nlohmann::json::out_of_range&) {
    refuse_at(source, "holds a number that is too large");
  }
}

Model read_model(const std::string& spec, const std::string& as) {
  if (spec.empty()) refuse_at("--model", "is empty; give a name, a file or h=…,a=…,layers=…");
  const auto known = model_from_zoo(spec);
  if (known && as.empty()) return *known;
  if (!known && is_file(spec)) {
    const std::string text = read_file(spec);
    const auto start = text.find_first_not_of(" \t\r\n");
    const bool yaml = spec.ends_with(".yml") || spec.ends_with(".yaml");
    if (spec.ends_with(".json") || (!yaml && start != std::string::npos && text[start] == '{'))
      return model_from_huggingface(parse_json(text, spec), spec, as);
    if (as.empty()) return yaml ? model_from_neox(text, spec) : model_from_megatron(parse_arguments(text), spec);
  }
  if (!as.empty()) refuse_at("--as", fmt::format("{} is the family to read a config.json by; '{}' is none", as, spec));
  if (spec.rfind("--", 0) == 0) return model_from_megatron(parse_arguments(spec), "--model");
  if (spec.find('=') != std::string::npos) return model_from_inline(spec);
  refuse_at("--model", fmt::format("'{}' is neither a known model nor a file; known: {}", spec, nearest(spec)));
}

}  // namespace medley::model
