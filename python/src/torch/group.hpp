// The Medley side of a process group: its comm, and the context that all groups of the process share.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <medley/medley.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace medley::torch {

/// A context and the state that its groups share.
class SharedContext {
 public:
  SharedContext(ContextOptions options, int cuda_device)
      : context(std::move(options)), device(cuda_device) {}
  /// A comm's name, unique in the job as Context::make_comm requires. torch's group name is the same on all
  /// members, but disjoint groups may share it (new_subgroups of a subgroup), and so may a group that is
  /// created again after its destruction (names derived from the ranks).
  std::string comm_name(const std::string& group, const std::vector<int>& ranks);

  Context context;
  const int device;  ///< the CUDA device

 private:
  std::mutex mutex_;
  std::map<std::string, int> made_;  ///< number of comms so far, by name
};

/// The members of a new process group.
struct Membership {
  c10::intrusive_ptr<c10d::Store> store;
  int rank = 0;
  int size = 1;
  std::string name;               ///< torch's, the same on all members
  std::vector<int> global_ranks;  ///< empty for torch's default group
  std::chrono::milliseconds timeout{};
  std::vector<std::string> backends;  ///< of the context, if this group creates it
  std::string rules;                  ///< see medley/rules.hpp
  bool exact = true;                  ///< CommOptions::exact
  int device = 0;
  bool own_context = false;  ///< its members come from several jobs
};

/// A comm and its context.
struct Joined {
  std::shared_ptr<SharedContext> context;
  Comm comm;
  std::vector<int> ranks;  ///< the members' ranks in the context
};

/// torch's default group creates the context; groups of some of its ranks are comms in it, so that operations
/// of all groups are ordered by the memory they touch and one progress thread serves them. If the default
/// group is not Medley's, every group has its own context.
Joined join(const Membership& membership);
/// A group of some ranks of another, given as ranks in that one's context.
Joined split(const Joined& parent, const Membership& membership, std::vector<int> ranks);
/// From now on no new group joins this context, because its default group has been shut down.
void leave(const std::shared_ptr<SharedContext>& context);

}  // namespace medley::torch
