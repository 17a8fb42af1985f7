// A GPT-NeoX yml as flat keys; spellings with `-` and `_` are equal. Used for models and layouts.
#pragma once

#include <map>
#include <string>

#include "model/checked.hpp"

namespace medley::model {

class YamlMap {
 public:
  /// Throws Error(invalid) naming `source` and the line if the text is not a mapping.
  YamlMap(const std::string& text, const std::string& source);
  bool has(const std::string& key) const { return values_.count(key) > 0; }
  Count number(const std::string& key) const;
  Count number(const std::string& key, Count fallback) const;
  double real(const std::string& key, double fallback) const;
  bool flag(const std::string& key, bool fallback) const;
  std::string text(const std::string& key, const std::string& fallback) const;

 private:
  std::string source_;
  std::map<std::string, std::string> values_;  ///< nested maps as "zero_optimization.stage"
};

}  // namespace medley::model
