// Reads pickles of plain values (None, booleans, numbers, text, lists, tuples, dictionaries) as JSON. Nothing
// in a pickle is run: of functions, only torch's marks of list types are known, and are passed over; all
// others are refused.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace medley::trace {

/// Throws Error(invalid) with the byte at which it went wrong; `place` names the file.
nlohmann::json read_pickle(std::string_view bytes, const std::string& place);

}  // namespace medley::trace
