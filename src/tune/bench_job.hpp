// A whole benchmark on the ranks of a job, from making their context to the rows: what `medley bench` runs on
// every rank.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <variant>
#include <vector>

#include "tune/bench.hpp"
#include "tune/mix.hpp"

namespace medley::tune {

struct BenchRequest {
  BenchOptions options;              ///< no backends: all that work here
  std::string table{};               ///< a route table for auto, which is then measured too where no backends are named
  std::vector<std::string> mixes{};  ///< whole steps instead of single operations (mix_names)
};

/// What a reader of the figures should know about the job.
struct BenchJob {
  int rank = 0, ranks = 1, hosts = 1;
  /// By messages between hosts: times are right to within microseconds of the network.
  bool clocks_compared = false;
  /// Auto is measured: by `table` or, where that has no path, by the built-in order.
  bool follows_table = false;
  TableInfo table{};
  /// On rank 0: backends that the table chooses for such memory and hosts, and that are not open, so that auto takes others.
  std::vector<std::string> not_open{};
};

struct BenchResult {
  BenchJob job;
  std::vector<BenchRow> rows;  ///< the same on all ranks
  /// Several routes were measured for each row, so that `fastest` says something.
  bool routes_compete = false;
};

struct MixResult {
  BenchJob job;
  std::vector<MixRow> rows;  ///< the same on all ranks
};

struct BenchHooks {
  std::function<void(const BenchJob&)> begin = [](const BenchJob&) {};  ///< before anything is measured
  /// Cells done, of how many.
  std::function<void(std::size_t, std::size_t)> progress = [](std::size_t, std::size_t) {};
};

/// Throws Error(invalid) for what is no mix; a command asks before it starts ranks.
void check_mixes(const std::vector<std::string>& mixes);

/// Collective; mixes where the request names some.
std::variant<BenchResult, MixResult> run_bench(const BenchRequest& request, const BenchHooks& hooks);

nlohmann::ordered_json to_json(const BenchResult& result);
nlohmann::ordered_json to_json(const MixResult& result);
std::string to_csv(const std::vector<BenchRow>& rows);

}  // namespace medley::tune
