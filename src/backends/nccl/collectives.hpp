// Collectives as NCCL calls in a stream: NCCL's own where it has them, grouped sends and receives elsewhere, and a
// gather followed by a kernel for reductions that NCCL lacks. Nothing here waits.
#pragma once

#include <cuda_runtime_api.h>

#include <medley/backend.hpp>
#include <medley/sdk/task.hpp>

#include "backends/nccl/communicator.hpp"
#include "backends/nccl/pairs.hpp"

namespace medley::nccl {

/// A communicator, as a collective of one of its ranks uses it.
struct CommView {
  Communicator& comm;
  Pairs& pairs;
  cudaStream_t stream;
  int rank, size;
  void* token;  ///< a byte on the device to send where there is no data
};

/// Whether the collective is one NCCL call or group; otherwise it takes steps().
bool one_launch(const Call& call);

/// Enqueues it; false if NCCL continues in the background and the communicator must become idle first.
bool launch(const CommView& view, const Call& call);

/// The same in steps, each of which may continue in the background. `call` outlives the task.
Task steps(const CommView view, const Call& call);

}  // namespace medley::nccl
