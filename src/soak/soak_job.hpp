// Everything that `medley soak` runs: wrong programs first, then right ones, with what came of both as one
// value.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "soak/invalid.hpp"
#include "soak/soak.hpp"

namespace medley::soak {

enum class Programs : std::uint8_t {
  /// Right ones, and one wrong one for every 50: each of those needs fresh ranks, and some wait for a
  /// deadline.
  both,
  valid,
  invalid,
};

struct SoakRequest {
  int ranks = 2;
  WorkerOptions work{};  ///< no backends: all that work here
  Programs programs = Programs::both;
};

struct SoakResult {
  int ranks = 2;
  std::uint64_t seed = 1;
  std::vector<std::string> backends;
  Outcome valid;
  InvalidOutcome invalid;
  std::int64_t invalid_asked = 0;  ///< wrong programs that were to run
  std::int64_t hangs() const;
  std::int64_t mismatches() const;
  bool passed() const { return valid.failures.empty() && invalid.failures.empty(); }
};

struct SoakHooks {
  std::function<void(std::int64_t)> progress = [](std::int64_t) {};    ///< right programs done
  std::function<void(const Failure&)> failed = [](const Failure&) {};  ///< shrunk
  std::function<void(const InvalidFailure&)> invalid_failed = [](const InvalidFailure&) {};
  /// Before the right programs run.
  std::function<void(const SoakResult&)> invalid_done = [](const SoakResult&) {};
};

/// The backends asked for, or all that work on this machine.
std::vector<std::string> backends_or_all(std::vector<std::string> backends);

/// The program of a failure as pseudo-code, without the steps that it fails without.
std::string program_text(const Failure& failure, int ranks, const GenerateOptions& options);

/// Starts the ranks of each job itself, as this very command.
SoakResult run_soak(const SoakRequest& request, const SoakHooks& hooks);

nlohmann::ordered_json to_json(const SoakResult& result);

/// What one rank did of a job that a launcher started.
struct RankResult {
  Tally tally;
  std::string problem{};  ///< the error that ended it; empty: none
};

/// On a rank: runs the programs. In a job of run_soak() the process that watches gets the results; otherwise
/// they are returned, and an error counts as a hang or a mismatch.
RankResult soak_on_rank(const WorkerOptions& options, Programs programs, int rank, int ranks);

}  // namespace medley::soak
