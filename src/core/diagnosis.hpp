// Turns what the ranks of a comm say about themselves into words: who is where, who is missing, and what that looks like.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include <medley/export.hpp>

namespace medley::core {

/// `answers`: of each rank that answered, what Engine::status_of() gave there. `sequence`: of the collective that timed
/// out; 0 for a message. The text begins on a new line, or is empty when nobody was asked.
MEDLEY_API std::string diagnose(const std::string& comm, int size, std::uint64_t sequence,
                                const std::map<int, nlohmann::json>& answers);

}  // namespace medley::core
