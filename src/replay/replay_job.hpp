// A whole replay on the ranks of a job, from reading the schedule to measured and predicted step times: what
// `medley replay` runs on every rank.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "replay/replay.hpp"
#include "trace/summary.hpp"

namespace medley::replay {

struct ReplayRequest {
  std::string schedule;  ///< the file
  /// The backends to compare, in interleaved rounds; "auto": the runtime's choice. Empty: all that work here, and auto.
  std::vector<std::string> backends{};
  std::string table{};             ///< a route table that auto follows and that predicts a step's time
  std::filesystem::path folder{};  ///< where the ranks record, the same for all of them
  int steps = 5;                   ///< over each backend
  bool calibrate = false;          ///< also time a step's operations one at a time and predict the step from those
  ReplayOptions options{};
  std::function<void(int, int)> progress = [](int, int) {};  ///< rounds done, of how many; on every rank
};

struct ReplayResult {
  std::string schedule;
  int rank = 0, ranks = 1;
  double scale = 1;
  std::vector<std::string> backends;          ///< in the order asked for
  std::map<std::string, double> step_us;      ///< by backend: the median of all rounds
  std::map<std::string, double> by_parts_us;  ///< predicted from its operations in isolation; empty: not measured
  std::map<std::string, double> by_table_us;  ///< predicted from the table, where it knows all operations
  std::string table;                          ///< the one in use; empty: none
  std::size_t unknown = 0;                    ///< operations of a step that the table does not cover
  // On rank 0 only: what was recorded, from the busiest rank.
  trace::Trace trace{};
  trace::Summary summary{};
};

/// Throws Error(invalid) when the schedule or the table cannot be read or the schedule does not fit `ranks` (0: as many
/// as it has); a command calls this before it starts ranks.
void check_replay(const ReplayRequest& request, int ranks);

/// Collective.
ReplayResult run_replay(const ReplayRequest& request);

nlohmann::ordered_json to_json(const ReplayResult& result);

}  // namespace medley::replay
