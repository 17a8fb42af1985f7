// The Medley side of a process group: its comm, and the context that all groups of the process share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <medley/medley.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace medley::torch {

/// Who is in a new process group.
struct Membership {
  c10::intrusive_ptr<c10d::Store> store;
  int rank = 0;
  int size = 1;
  std::string name;               ///< torch's, the same on all members and unique
  std::vector<int> global_ranks;  ///< empty for torch's default group
  std::chrono::milliseconds timeout{};
  std::vector<std::string> backends;  ///< of the context, when this group is the one that makes it
  std::string rules;                  ///< see medley/rules.hpp
  int device = 0;
};

/// A comm and the context it lives in.
struct Joined {
  std::shared_ptr<Context> context;
  Comm comm;
  int device = 0;  ///< the CUDA device of the context
};

/// torch's default group makes the context; groups of some of its ranks are comms in it, so that operations
/// of all groups are ordered by the memory they touch and one progress thread serves them. Where the default
/// group is not Medley's, every group has a context of its own.
Joined join(const Membership& membership);
/// From now on no new group joins this context: its default group has been shut down.
void leave(const std::shared_ptr<Context>& context);

}  // namespace medley::torch
