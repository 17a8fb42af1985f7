// Lists and sizes as they are written on the command line: `4`, `64K`, `1M` (powers of 1024), `4:64M`, `a,b,c`.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "tune/size_text.hpp"

namespace medley::cli {

std::size_t parse_size(const std::string& text);
/// `A:B`, or one size for both.
std::pair<std::size_t, std::size_t> parse_size_range(const std::string& text);
std::vector<std::string> parse_list(const std::string& text);
using tune::size_text;

}  // namespace medley::cli
