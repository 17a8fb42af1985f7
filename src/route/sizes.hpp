// Sizes as people write them: `4`, `64K`, `1M`, `2G`, powers of 1024. One reader for rules, tables and the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <medley/export.hpp>

namespace medley::route {

/// None for anything else, or when it does not fit.
MEDLEY_API std::optional<std::int64_t> read_size(std::string_view text) noexcept;

}  // namespace medley::route
