// Shows operations to torch.profiler as those of nccl are shown there (record_param_comms), so that what
// reads its traces, `medley trace` among it, knows what was sent. Made by every call of the backend.
#pragma once

#include <ATen/record_function.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <medley/types.hpp>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <optional>

namespace medley::torch {

/// An operation as its caller sees it.
struct Call {
  Op op{};
  const at::Tensor* in = nullptr;   ///< what this rank gives; of a receive or scatter: what it gets
  const at::Tensor* out = nullptr;  ///< where it is not as large as `in`
  bool async = false;
  int peer = -1;  ///< of a message, in the group
};

/// While it lives the profiler, if there is one, shows the call.
class Profiled {
 public:
  Profiled(const c10d::Backend& group, const std::vector<std::uint64_t>& global_ranks, const Call& call,
           std::uint64_t sequence);

 private:
  std::optional<c10::DebugInfoGuard> info_;
  std::optional<at::RecordFunction> function_;
};

}  // namespace medley::torch
