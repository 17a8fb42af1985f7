// Measures NCCL's algorithms and protocols one after the other and adds them to a route table as routes of the backend
// nccl, for NCCL's tuner plugins. Behind `medley tune --memory cuda --nccl`.
#pragma once

#include <string>
#include <vector>

#include "route/nccl_algorithm.hpp"
#include "tune/tune_job.hpp"

namespace medley::tune {

struct NcclSweepResult {
  TuneResult tuned;
  std::vector<std::string> refused;  ///< variants that NCCL cannot do here, each with its reason
};

/// Collective. Each variant gets an equal share of the request's time and a context of its own, since NCCL fixes the
/// algorithm when a communicator is made. `tuned` is what run_tune() returned; rank 0 saves its table with the new
/// cells. Algorithms over nccl's messages are measured again beside each variant; what they have in common with the
/// table cancels drift.
NcclSweepResult sweep_nccl(const TuneRequest& request, TuneResult tuned,
                           const std::vector<route::NcclAlgorithm>& variants, const TuneJobHooks& hooks);

}  // namespace medley::tune
