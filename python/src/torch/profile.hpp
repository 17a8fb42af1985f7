// Reports operations to torch.profiler in nccl's form (record_param_comms), so that readers of its traces,
// `medley trace` among them, know what was sent. Every call of the backend makes one.
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
  const at::Tensor* in = nullptr;   ///< this rank's input; of a receive or scatter: its output
  const at::Tensor* out = nullptr;  ///< if its size differs from `in`
  bool async = false;
  int peer = -1;  ///< of a message, rank in the group
};

/// The profiler, if active, shows the call for this object's lifetime.
class Profiled {
 public:
  Profiled(const c10d::Backend& group, const std::vector<std::uint64_t>& global_ranks, const Call& call,
           std::uint64_t sequence);

 private:
  std::optional<c10::DebugInfoGuard> info_;
  std::optional<at::RecordFunction> function_;
};

}  // namespace medley::torch
