// Checked environment variables: every error names the variable and its value.
#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <medley/error.hpp>

#include "bootstrap/environment_parts.hpp"

namespace medley {

std::optional<std::string> Variables::text(const std::string& name) const {
  auto value = environment_(name);
  return value && !value->empty() ? value : std::nullopt;
}

std::string Variables::first(std::initializer_list<const char*> names) const {
  for (const char* name : names) {
    if (auto value = text(name)) return *value;
  }
  return "";
}

std::optional<int> Variables::number(const std::string& name, int least, int most) const {
  const auto value = text(name);
  if (!value) return std::nullopt;
  int number = 0;
  const char* end = value->data() + value->size();
  const auto [stop, error] = std::from_chars(value->data(), end, number);
  if (error != std::errc() || stop != end) {
    throw Error(ErrorKind::invalid, fmt::format("{}=\"{}\" is not a whole number", name, *value));
  }
  if (number < least || number > most) {
    throw Error(ErrorKind::invalid, fmt::format("{}={} must lie within {} and {}", name, number, least, most));
  }
  return number;
}

void Variables::place(const char* rank_name, const char* size_name, Place& into) const {
  constexpr int most = std::numeric_limits<int>::max();
  const auto size = number(size_name, 1, most);
  const auto rank = number(rank_name, 0, most);
  if (!size || !rank) {
    throw Error(ErrorKind::invalid, fmt::format("{} is set but {} is not: set both or neither",
                                                size ? size_name : rank_name, size ? rank_name : size_name));
  }
  if (*rank >= *size) {
    throw Error(ErrorKind::invalid, fmt::format("{}={} does not fit {}={}: ranks count from 0 to {}", rank_name, *rank,
                                                size_name, *size, *size - 1));
  }
  into.rank = *rank;
  into.size = *size;
}

int Variables::local_rank(std::initializer_list<const char*> names) const {
  for (const char* name : names) {
    if (auto value = number(name, 0, std::numeric_limits<int>::max())) return *value;
  }
  return -1;
}

}  // namespace medley
