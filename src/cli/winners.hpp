// The fastest routes of a table by operation and size, for the screen. Used by `medley tune`.
#pragma once

#include <string>

#include "route/table.hpp"

namespace medley::cli {

/// One table for each shape: a line per range of sizes that one route wins.
std::string winners_text(const route::Table& table);

}  // namespace medley::cli
