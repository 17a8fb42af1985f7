#include "cli/sizes.hpp"

#include <fmt/format.h>

#include <medley/error.hpp>

#include "base/split.hpp"
#include "route/sizes.hpp"

namespace medley::cli {

std::size_t parse_size(const std::string& text) {
  const auto bytes = route::read_size(text);
  if (!bytes) throw Error(ErrorKind::invalid, fmt::format("\"{}\" is not a size; write it as 4, 64K, 1M or 2G", text));
  return static_cast<std::size_t>(*bytes);
}

std::pair<std::size_t, std::size_t> parse_size_range(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return {parse_size(text), parse_size(text)};
  const std::size_t first = parse_size(text.substr(0, colon)), last = parse_size(text.substr(colon + 1));
  if (first > last) throw Error(ErrorKind::invalid, fmt::format("the sizes {} run backwards", text));
  return {first, last};
}

std::vector<std::string> parse_list(const std::string& text) {
  return split(text, ',');
}

}  // namespace medley::cli
