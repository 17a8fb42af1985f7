// Splits lists written as one text, such as `shm,mpi` or `/a:/b`, as variables and options spell them.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace medley {

/// The items that are not empty.
inline std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> items;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) items.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return items;
}

}  // namespace medley
