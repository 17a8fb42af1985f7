// How deep JSON text nests. nlohmann's parser does not recurse, but its writer does: a reader that quotes a
// value in an error message must refuse deep text first. Used by readers of files that others wrote.
#pragma once

#include <algorithm>
#include <string_view>

namespace medley::core {

/// No file of Medley's nests deeper than ten.
inline constexpr int deepest_json = 64;

/// The most brackets open at once, outside of strings. The text need not be valid.
inline int json_depth(std::string_view text) noexcept {
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace medley::core
