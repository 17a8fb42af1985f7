// Parses sizes such as `4`, `64K`, `1M`, `2G`, in powers of 1024. One parser for rules, tables and the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <medley/export.hpp>

namespace medley::route {

/// Empty for anything else, or on overflow.
MEDLEY_API std::optional<std::int64_t> read_size(std::string_view text) noexcept;

}  // namespace medley::route
