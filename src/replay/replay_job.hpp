// A whole replay on the ranks of a job, from reading the schedule to measured and predicted step times: what
// `medley replay` runs on every rank.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "replay/replay.hpp"
#include "trace/summary.hpp"

namespace medley::replay {

struct ReplayRequest {
  std::string schedule;  ///< the file
  /// That carry the operations, in interleaved rounds; "auto": the runtime's choice. Empty: all that work
  /// here, and auto.
  std::vector<std::string> backends{};
  std::string table{};             ///< a route table that auto follows and that a step's time is predicted by
  std::filesystem::path folder{};  ///< where the ranks record, the same for all of them
  int steps = 5;                   ///< over each backend
  bool calibrate = false;  ///< also time a step's operations one at a time and predict the step from those
  ReplayOptions options{};
};

struct ReplayResult {
  std::string schedule;
  int rank = 0, ranks = 1;
  double scale = 1;
  std::vector<std::string> backends;      ///< in the order asked for
  std::map<std::string, double> step_us;  ///< by backend: the median of all rounds
  std::map<std::string, double>
      by_parts_us;  ///< as the times of its operations alone predict it; empty: not measured
  std::map<std::string, double> by_table_us;  ///< as the table predicts it, where it knows all operations
  std::string table;                          ///< the one that was followed; empty: none
  std::size_t unknown = 0;                    ///< operations of a step that the table says nothing about
  // On rank 0 alone: what was recorded, of the busiest rank.
  trace::Trace trace{};
  trace::Summary summary{};
};

/// Throws Error(invalid) when the schedule or the table cannot be read or the schedule does not fit `ranks`
/// (0: as many as it has); a command asks before it starts ranks.
void check_replay(const ReplayRequest& request, int ranks);

/// Collective.
ReplayResult run_replay(const ReplayRequest& request);

nlohmann::ordered_json to_json(const ReplayResult& result);

}  // namespace medley::replay
