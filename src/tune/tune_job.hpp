// A whole tuning run on the ranks of a job, from making their context to the saved table: what `medley tune`
// runs on every rank.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "tune/step.hpp"
#include "tune/tuner.hpp"
#include "tune/winners.hpp"

namespace medley::tune {

struct TuneRequest {
  TuneOptions options;  ///< no backends: all that work here
  std::filesystem::path
      file{};  ///< the table; resumes if it exists. Empty: the one that contexts look for in the user's cache
  /// Makes the step to tune for, on all ranks together; none: single operations.
  std::function<std::unique_ptr<Step>(Context&)> step{};
  std::string step_name{};
  bool replace = false;          ///< the table may give up another step that it was tuned for, settled
  bool progress_thread = false;  ///< the step computes while operations are pending
};

/// A built-in mix (mix_names) as the step of a request.
std::function<std::unique_ptr<Step>(Context&)> mix_as_step(const std::string& mix, Memory memory);

struct TuneResult {
  int rank = 0;
  std::filesystem::path file;
  route::Table table;         ///< the same on all ranks
  std::size_t new_cells = 0;  ///< that rank 0 did not find in the file
  std::string advice{};       ///< what to change about where the ranks run; empty: nothing
};

struct TuneJobHooks {
  std::function<void(const TuneProgress&)> progress = [](const TuneProgress&) {};  ///< before every cell, on rank 0
  std::function<bool()> stop = [] { return false; };                               ///< asked on rank 0
};

/// Where the table goes. Throws Error(invalid) when no file is named and the user has no cache.
std::filesystem::path table_file(const TuneRequest& request);

/// Only these operations, each in its own size, instead of all operations in all sizes.
void restrict_to(TuneOptions& options, std::vector<NeededOperation> needed);

/// Collective. Rank 0 saves the table as it grows and at the end. Throws Error(invalid) where the file holds
/// the table of another machine.
TuneResult run_tune(const TuneRequest& request, const TuneJobHooks& hooks);

/// The table.
nlohmann::ordered_json to_json(const TuneResult& result);

}  // namespace medley::tune
