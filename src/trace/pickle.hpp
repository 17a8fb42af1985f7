// Reads pickles of plain values (None, booleans, numbers, text, lists, tuples, dictionaries) as JSON. Nothing
// in a pickle is run: of all functions, only torch's list type tags are accepted, and skipped; others are
// rejected.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace medley::trace {

/// Throws Error(invalid) with the byte of the error; `place` names the file. What dictionaries hold under the key
/// `left_out` is not part of the result.
nlohmann::json read_pickle(std::string_view bytes, const std::string& place, std::string_view left_out = {});

}  // namespace medley::trace
