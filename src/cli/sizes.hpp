// Lists and sizes as they are written on the command line: `4`, `64K`, `1M` (powers of 1024), `4:64M`, `a,b,c`.
#pragma once

#include <string>
#include <vector>

#include "tune/size_text.hpp"
#include "tune/words.hpp"

namespace medley::cli {

std::vector<std::string> parse_list(const std::string& text);
using tune::parse_size, tune::parse_size_range, tune::size_text;

}  // namespace medley::cli
