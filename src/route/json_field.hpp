// A value of a route table's JSON with its path, so that errors name the field. Used by the readers of tables.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <medley/error.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "route/tuned_step.hpp"

namespace medley::route {

using nlohmann::json;

inline constexpr std::size_t most_routes = 1000;
inline constexpr std::size_t longest_name = 200;
// Up to eleven days; down to the smallest number that is not written as zero.
inline constexpr double longest_us = 1e12, shortest_us = 0.001;

/// A value with its path, such as cells[3].routes[0].median_us.
struct JsonField {
  const std::string& table;
  std::string path;
  const json& value;

  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorKind::invalid, fmt::format("route table {}: {}{}", table, path.empty() ? "" : path + ": ", why));
  }
  std::string shown() const {
    const std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
    return text.size() > 60 ? text.substr(0, 60) + "…" : text;
  }
  JsonField at(const char* key) const {
    if (!value.is_object()) refuse("it is not an object");
    const auto found = value.find(key);
    if (found == value.end()) refuse(fmt::format("\"{}\" is missing", key));
    return {table, path.empty() ? key : path + "." + key, *found};
  }
  JsonField at(std::size_t index) const { return {table, fmt::format("{}[{}]", path, index), value[index]}; }
  std::size_t length() const {
    if (!value.is_array()) refuse("it is not a list");
    return value.size();
  }
  std::string words() const {
    if (!value.is_string()) refuse(fmt::format("{} is not a text", shown()));
    const auto& text = value.get_ref<const std::string&>();
    if (text.size() > longest_name) refuse(fmt::format("it is longer than {} characters", longest_name));
    return text;
  }
  std::string named() const {
    const std::string text = words();
    const auto plain = [](char c) { return c > ' ' && c != '/' && c != ';' && c != '"' && c < 127; };
    if (text.empty() || !std::all_of(text.begin(), text.end(), plain)) refuse(fmt::format("{} is not a name", shown()));
    return text;
  }
  std::int64_t whole(std::int64_t from, std::int64_t to) const {
    if (!value.is_number_integer()) refuse(fmt::format("{} is not a whole number", shown()));
    const bool huge = value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
    const std::int64_t number = huge ? INT64_MAX : value.get<std::int64_t>();
    if (huge || number < from || number > to) refuse(fmt::format("{} is not between {} and {}", shown(), from, to));
    return number;
  }
  double real(double from, double to) const {
    const double number = value.is_number() ? value.get<double>() : NAN;
    if (!(number >= from && number <= to))
      refuse(fmt::format("{} is not a number between {} and {}", shown(), from, to));
    return number;
  }
};

Op read_op(const JsonField& field);
Memory read_memory(const JsonField& field);
/// The class of element types under "dtype", which must go with the operation.
DTypeClass read_dtype(const JsonField& field, Op op);
/// From "hosts" and "ranks_per_host".
Shape read_shape(const JsonField& field);
TunedStep read_tuned_step(const JsonField& field);

}  // namespace medley::route
