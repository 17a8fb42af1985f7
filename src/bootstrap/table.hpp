// The contents of a store and the two operations beyond a map's own. Shared by LocalStore and
// StoreServer.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace medley {

using StoreTable = std::map<std::string, std::string>;

/// Adds to the decimal number under `key`; Error when the value is not a number or the sum overflows 64 bits.
std::int64_t add_to(StoreTable& table, const std::string& key, std::int64_t delta);

void erase_range(StoreTable& table, const std::string& prefix);

}  // namespace medley
