// One pipeline stage as the simulator runs it: its rank's schedule, with every range that no other stage can
// affect folded into one figure. Made from a Schedule, run by run_pipeline.hpp.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "cost/entry_time.hpp"

namespace medley::cost {

/// A send to or a receive from another stage.
struct Transfer {
  bool send = false;
  int stage = 0;  ///< the peer stage
  double us = 0;
};

struct StageItem {
  enum class Type : std::uint8_t {
    spend,     ///< spends `spent`, `repeat` times
    comm,      ///< blocks, queued behind earlier operations on its link
    async,     ///< starts when its link is free; a wait for its token waits for its end
    wait,      ///< for everything with the token
    transfer,  ///< transfers [first, last): together; blocking when token is 0
    meet,      ///< a collective with other stages
  };
  Type type = Type::spend;
  EntryCost cost;
  int token = 0;
  std::uint32_t first = 0, last = 0;  ///< transfers
  std::uint32_t block = 0;            ///< spend: index of `spent`
  double repeat = 1;
  double host_us = 0;  ///< spend: host time to issue it all, once
};

/// How kernels slow down while collectives run beside them.
struct Overlap {
  double slowdown = 0;
  /// Time of kernels that take `us` without overlap, started at `now` while collectives run until `busy`.
  double stretched(double us, double now, double busy) const {
    if (busy <= now || us <= 0) return us;
    const double shared = std::min(us * (1 + slowdown), busy - now);
    return us + shared * slowdown / (1 + slowdown);
  }
};

struct StageProgram {
  std::vector<StageItem> items;
  std::vector<Transfer> transfers;
  std::vector<Spent> spent;
  Overlap overlap;
  /// The host issued this step while the GPU ran the previous one: only the host's total time can hold up the
  /// GPU.
  bool host_ahead = false;
};

/// Folds the schedule of `rank`.
StageProgram fold_stage(const Schedule& schedule, const Layout& layout, const std::vector<EntryCost>& costs, Count rank,
                        const Overlap& overlap = {});

}  // namespace medley::cost
