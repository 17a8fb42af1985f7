// Reads the schedules that `medley plan --schedule` writes: what every rank of a world computes and sends in one step.
// Used by replay, which runs it, and by reconcile, which compares it with a run.
#pragma once

#include <map>
#include <medley/types.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace medley::replay {

enum class Kind : std::uint8_t { compute, comm, wait };

/// One entry of a schedule.
struct Action {
  Kind kind = Kind::comm;
  std::string scope;              ///< "forward/attention.qkv"
  double flops = 0;               ///< compute: FLOPs of GEMMs and attention
  std::int64_t memory_bytes = 0;  ///< compute: bytes read and written
  std::optional<double> us{};     ///< compute: the cost model's time on the machine the plan was made for
  Op op = Op::all_reduce;
  DType dtype = DType::u8;
  ReduceOp reduce = ReduceOp::sum;
  std::string group;
  std::int64_t bytes = 0;   ///< the full tensor
  int peer = -1;            ///< world rank
  int token = 0;            ///< not 0: asynchronous until a wait with it
  int batch = 0;            ///< adjacent entries with the same number start together
  std::int64_t layer = -1;  ///< of the model; -1: outside the layers, or not given
  std::string why;
};

struct RankSchedule {
  int rank = 0;
  std::map<std::string, std::vector<int>> groups;  ///< ranks of the world, ascending
  std::vector<Action> actions;
};

struct WorldSchedule {
  int world = 0;  ///< 0: any, since every rank does the same on groups of all
  std::vector<RankSchedule> ranks;
  /// That of `rank` in a world of `size`.
  RankSchedule of(int rank, int size) const;
};

/// Refuses what is not a schedule, naming file and entry.
WorldSchedule read_schedule(const std::string& path);
WorldSchedule schedule_from_json(const nlohmann::json& json, const std::string& place);

/// The index after the entries that start together with the one at `first`: itself alone, or its batch.
std::size_t batch_end(const std::vector<Action>& actions, std::size_t first);

/// Bytes of an operation with sizes scaled by `scale`: whole elements, at least one, unless there were none.
std::int64_t scaled_bytes(std::int64_t bytes, DType dtype, double scale);

}  // namespace medley::replay
