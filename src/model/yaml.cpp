#include "model/yaml.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "model/text.hpp"

namespace medley::model {
namespace {

void flatten(const YAML::Node& node, const std::string& prefix, int depth, std::map<std::string, std::string>& out,
             const std::string& source) {
  if (depth > 8) refuse_at(source, "is nested more than 8 deep; that is no GPT-NeoX configuration");
  for (const auto& item : node) {
    if (!item.first.IsScalar())
      refuse_at(source, fmt::format("line {} has a key that is not text", item.first.Mark().line + 1));
    const std::string key = prefix + plain_key(item.first.Scalar());
    if (item.second.IsMap()) flatten(item.second, key + ".", depth + 1, out, source);
    else if (item.second.IsScalar()) {
      const auto [at, fresh] = out.emplace(key, item.second.Scalar());
      if (!fresh && at->second != item.second.Scalar()) {
        refuse_at(source, fmt::format("{} is {} and, on line {}, {}", key, at->second, item.second.Mark().line + 1,
                                      item.second.Scalar()));
      }
    }
  }
}

}  // namespace

YamlMap::YamlMap(const std::string& text, const std::string& source) : source_(source) {
  // yaml-cpp recurses into flow collections and indentation; no file we read nests this deeply.
  int depth = 0;
  for (const char c : text) {
    if (c == '[' || c == '{') ++depth;
    if (depth > 256) refuse_at(source, "has too many brackets; that is no GPT-NeoX configuration");
  }
  for (const auto& line : split(text, '\n')) {
    if (line.rfind("- - - - - - - -", 0) == 0 || line.rfind("? ? ? ? ? ? ? ?", 0) == 0)
      refuse_at(source, "is nested too deep");
  }
  try {
    const YAML::Node root = YAML::Load(text);
    if (!root.IsMap()) refuse_at(source, "is not a mapping of keys to values");
    flatten(root, "", 0, values_, source);
  } catch (const YAML::Exception& error) {
    refuse_at(source, fmt::format("is not YAML: line {}: {}", error.mark.line + 1, error.msg));
  }
}

Count YamlMap::number(const std::string& key) const {
  if (!has(key)) refuse_at(source_, fmt::format("{} is missing", key));
  return parse_count(values_.at(key), source_, key);
}
Count YamlMap::number(const std::string& key, Count fallback) const {
  return has(key) && !values_.at(key).empty() && values_.at(key) != "null" ? number(key) : fallback;
}
double YamlMap::real(const std::string& key, double fallback) const {
  return has(key) ? parse_real(values_.at(key), source_, key) : fallback;
}
bool YamlMap::flag(const std::string& key, bool fallback) const {
  return has(key) ? parse_switch(values_.at(key), source_, key) : fallback;
}
std::string YamlMap::text(const std::string& key, const std::string& fallback) const {
  return has(key) ? values_.at(key) : fallback;
}

}  // namespace medley::model
