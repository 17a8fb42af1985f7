// "Did you mean …?": the known name that is spelled most like a wrong one. Used where users type names.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace medley {

/// Insertions, deletions and replacements that lead from one word to the other.
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
    }
  }
  return row.back();
}

/// The name that differs from `word` in at most two letters, or in a third of a long word; empty: none does. Among
/// equals the one with the same first letter, then the first.
template <typename Names>
std::string closest(std::string_view word, const Names& names) {
  std::string found;
  std::size_t least = SIZE_MAX;  // twice the distance, plus one for another first letter
  for (const auto& each : names) {
    const std::string_view name(each);
    if (word.empty() || name.empty()) continue;
    const std::size_t distance = edit_distance(word, name);
    const std::size_t here = 2 * distance + (word.front() == name.front() ? 0 : 1);
    if (distance <= std::max<std::size_t>(2, word.size() / 3) && here < least) found = name, least = here;
  }
  return found;
}

/// "; did you mean NAME?", or nothing.
template <typename Names>
std::string did_you_mean(std::string_view word, const Names& names) {
  const std::string name = closest(word, names);
  return name.empty() ? "" : "; did you mean " + name + "?";
}

}  // namespace medley
