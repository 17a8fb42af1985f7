// The order in which a pipeline stage runs its forward and backward passes, and the messages between stages.
// Used by every framework that pipelines; DeepSpeed has its own order (deepspeed_pipeline.cpp).
#pragma once

#include <functional>
#include <vector>

#include "plan/view.hpp"

namespace medley::plan {

struct Pass {
  bool forward = true;
  Count micro_batch = 0;
  int chunk = 0;
};

/// The passes of `stage` in order: GPipe, 1F1B or Megatron's interleaved 1F1B. Without a pipeline F0 B0 F1 B1
/// ….
std::vector<Pass> pass_order(const Layout& layout, int stage);

struct PipelineRules {
  bool batched = true;          ///< a send and the next receive start together (Megatron's batch_isend_irecv)
  bool shape_exchange = false;  ///< 24 bytes before each activation or gradient
  bool overlap = false;         ///< messages overlap computation (interleaved)
};

/// Writes all passes of the view's stage into `to`: `body` returns the block of a pass.
void write_pipeline(const View& view, Schedule& schedule, Schedule::BlockId to, const PipelineRules& rules,
                    const std::function<Schedule::BlockId(const Pass&)>& body);

/// Bytes of one activation between stages: (s/c, /t with sequence parallelism)·b·h·e.
Count boundary_bytes(const View& view);

/// Adds a reference to block `body` to `to`, as one pass.
void add_pass(Schedule& schedule, Schedule::BlockId to, Schedule::BlockId body, const Pass& pass);

/// Adds the layers of a chunk, forward or backward, with the entries that `before` and `after` return around
/// each; neighbours that share a block and have no such entries become one repeated node.
struct LayerHooks {
  std::function<Schedule::BlockId(Count layer)> block;
  std::function<std::vector<Entry>(Count layer)> before, after;  ///< either may be empty
};
void add_layers(Schedule& schedule, Schedule::BlockId to, const Chunk& chunk, bool backward, const LayerHooks& hooks);

}  // namespace medley::plan
