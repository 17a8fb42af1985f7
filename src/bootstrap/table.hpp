// The contents of a store and the two changes that are more than a map's own. Shared by LocalStore and
// StoreServer.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace medley {

using StoreTable = std::map<std::string, std::string>;

/// Adds to the decimal number under `key`; Error when what is there is no number or the sum leaves 64 bits.
std::int64_t add_to(StoreTable& table, const std::string& key, std::int64_t delta);

void erase_range(StoreTable& table, const std::string& prefix);

}  // namespace medley
