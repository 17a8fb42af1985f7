// Keys of one JSON configuration, read with errors that name the file and the key. Used by the readers of
// Hugging Face configs; dots in a key select nested objects.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "model/checked.hpp"

namespace medley::model {

class Config {
 public:
  Config(const nlohmann::json& json, std::string source) : json_(json), source_(std::move(source)) {}

  const std::string& source() const noexcept { return source_; }
  /// Present and not null.
  bool has(std::string_view key) const { return find(key) != nullptr; }
  Count number(std::string_view key) const;
  bool flag(std::string_view key) const;
  std::string text(std::string_view key) const;
  std::vector<Count> numbers(std::string_view key) const;
  /// True, a number other than zero, or text.
  bool truthy(std::string_view key) const;
  /// The first of `keys` that is present; two that are present and differ are an error. Empty: none.
  std::string_view spelling(const std::vector<std::string>& keys) const;
  /// One letter per layer from a list of names (sliding_attention, …) or of 0 (linear) and 1 (full).
  std::string spans(std::string_view key) const;

 private:
  const nlohmann::json* find(std::string_view key) const;
  const nlohmann::json& at(std::string_view key) const;
  const nlohmann::json& json_;
  std::string source_;
};

}  // namespace medley::model
