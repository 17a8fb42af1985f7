// DeepSpeed's ZeRO stages as the engine issues them: gradient buckets, partitioned parameters and their
// prefetching. Shared by the deepspeed and neox frameworks.
#pragma once

#include <map>

#include "plan/frameworks.hpp"

namespace medley::plan {

/// A gradient bucket is flushed before a tensor would overfill it.
struct Flush {
  Count elements = 0;
  Count layer = 0;  ///< the layer whose backward pass overfills the bucket or ends the last one
  bool last = false;
};
std::vector<Flush> reduce_flushes(const std::vector<LocalTensor>& tensors, bool expert, Count bucket_elements);

/// What ZeRO-3's parameter coordinator gathers before each layer of a pass: coalesced fetches and prefetches.
using Fetches = std::map<Count, std::vector<Count>>;  ///< layer → padded elements of each all_gather
struct FetchPlan {
  Fetches forward, backward;
  std::vector<Count> persistent;  ///< padded elements of each parameter below the persistence threshold:
                                  ///< gathered once after the step
};
FetchPlan plan_fetches(const std::vector<LocalTensor>& tensors, bool expert, const Flags& flags, Count group);

/// Splits [from, to) at the ends of each rank's slice of the flattened parameters, for reductions to owners.
std::vector<Count> owner_slices(Count from, Count to, Count total, Count group);

}  // namespace medley::plan
