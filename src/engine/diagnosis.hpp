// Turns the ranks' status answers into a readable diagnosis: who is where, who is missing, and the likely cause.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include <medley/export.hpp>

namespace medley::core {

struct Diagnosis {
  std::string text;           ///< begins on a new line, or is empty when no rank was asked
  std::vector<int> at_fault;  ///< ranks of the comm that do not answer or have not called the collective
};

/// `answers`: from each rank that answered, the result of StatusBoard::status() there. `sequence`: of the collective
/// that timed out; 0 for a message.
MEDLEY_API Diagnosis diagnose(const std::string& comm, int size, std::uint64_t sequence,
                              const std::map<int, nlohmann::json>& answers);

}  // namespace medley::core
