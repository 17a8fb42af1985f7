// Sizes as the commands print them.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>

namespace medley::tune {

/// The shortest exact spelling: 65536 is 64K.
inline std::string size_text(std::int64_t bytes) {
  for (const auto& [shift, unit] : {std::pair{30, 'G'}, {20, 'M'}, {10, 'K'}}) {
    if (bytes > 0 && bytes % (std::int64_t{1} << shift) == 0) return fmt::format("{}{}", bytes >> shift, unit);
  }
  return fmt::format("{}", bytes);
}

}  // namespace medley::tune
