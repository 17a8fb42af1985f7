#include "model/config.hpp"

#include <fmt/format.h>

#include "model/text.hpp"

namespace medley::model {
namespace {

Count whole(const nlohmann::json& value, std::string_view key, const std::string& source) {
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX)
    refuse_at(source, fmt::format("{} passes 2^63", key));
  if (!value.is_number_integer()) refuse_at(source, fmt::format("{} must be a whole number", key));
  return value.get<Count>();
}

char letter_of(const nlohmann::json& item, std::string_view key, const std::string& source) {
  if (item.is_number_integer()) return item.get<Count>() == 0 ? 'L' : 'F';
  const std::string kind = item.is_string() ? item.get<std::string>() : item.dump();
  if (kind == "full_attention" || kind == "attention") return 'F';
  if (kind == "sliding_attention" || kind == "chunked_attention") return 'W';
  if (kind == "linear_attention") return 'L';
  refuse_at(source, fmt::format("{} names '{}'; known are full_attention, sliding_attention, "
                                "chunked_attention and linear_attention",
                                key, kind));
}

}  // namespace

const nlohmann::json* Config::find(std::string_view key) const {
  const nlohmann::json* value = &json_;
  for (const std::string& part : split(key, '.')) {
    if (!value->is_object() || !value->contains(part)) return nullptr;
    value = &(*value)[part];
  }
  return value->is_null() ? nullptr : value;
}

const nlohmann::json& Config::at(std::string_view key) const {
  const nlohmann::json* value = find(key);
  if (!value) refuse_at(source_, fmt::format("{} is missing", key));
  return *value;
}

Count Config::number(std::string_view key) const { return whole(at(key), key, source_); }

bool Config::flag(std::string_view key) const {
  if (!at(key).is_boolean()) refuse_at(source_, fmt::format("{} must be true or false", key));
  return at(key).get<bool>();
}

std::string Config::text(std::string_view key) const {
  if (!has(key)) return {};
  if (!at(key).is_string()) refuse_at(source_, fmt::format("{} must be text", key));
  return at(key).get<std::string>();
}

std::vector<Count> Config::numbers(std::string_view key) const {
  std::vector<Count> out;
  if (!at(key).is_array()) refuse_at(source_, fmt::format("{} must be a list", key));
  for (const auto& item : at(key)) out.push_back(whole(item, key, source_));
  return out;
}

bool Config::truthy(std::string_view key) const {
  const nlohmann::json* value = find(key);
  if (!value) return false;
  if (value->is_boolean()) return value->get<bool>();
  return value->is_number() ? value->get<double>() != 0 : value->is_string();
}

std::string_view Config::spelling(const std::vector<std::string>& keys) const {
  std::string_view first;
  for (const std::string& key : keys) {
    if (!has(key)) continue;
    if (first.empty()) first = key;
    else if (at(first) != at(key))
      refuse_at(source_, fmt::format("{} is {} but {} is {}", first, at(first).dump(), key, at(key).dump()));
  }
  return first;
}

std::string Config::spans(std::string_view key) const {
  if (!at(key).is_array()) refuse_at(source_, fmt::format("{} must be a list", key));
  std::string out;
  for (const auto& item : at(key)) out += letter_of(item, key, source_);
  return out;
}

}  // namespace medley::model
