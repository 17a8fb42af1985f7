// An ncclComm_t that is made, used and destroyed without blocking. Lanes and channels each have one.
#pragma once

#include <nccl.h>

#include <atomic>
#include <medley/error.hpp>
#include <medley/store.hpp>
#include <memory>
#include <string>

namespace medley::nccl {

std::string version_text();

class Communicator {
 public:
  /// Begins to connect; idle() returns true when it is done. On the current device, which callers keep current.
  Communicator(int ranks, int rank, const ncclUniqueId& id);
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  /// Lets what was launched reach the peers, for a bounded time, then destroys it.
  ~Communicator();

  /// Never blocks: a call may return before it is done, after it was passed to a thread, which costs tens of µs
  /// (docs/performance.md). For the first message of a pair and the first exchange of a pattern, which wait for the
  /// peers to connect.
  ncclComm_t get() const { return comm_; }
  /// The same ranks over the same connections, for calls that need not wait and return when they are in the stream:
  /// NCCL's own collectives, which are connected beforehand, and messages and exchanges of connected pairs.
  ncclComm_t fast() const { return fast_; }
  /// Whether fast() shares the pairs that get() has connected. Not where the user keeps NCCL from sharing.
  static bool shares_connections();
  /// Begins to make fast(), on all ranks, once idle(); idle() returns true when that is done.
  void make_fast(int rank);
  /// False while NCCL is still busy with the last call. Throws when NCCL has failed.
  bool idle();
  /// Throws unless a call succeeded or continues in the background; true if it is done.
  bool accept(ncclResult_t result, const char* what);
  /// Throws when NCCL has noticed an error since.
  void look_for_errors();
  /// Begins to stop running kernels and to close the connections.
  void abort() noexcept;
  /// After abort(): whether that is done, or takes too long.
  bool poll_abort() const noexcept;
  bool aborted() const { return comm_ == nullptr; }

 private:
  [[noreturn]] void fail(ncclResult_t result, const char* what);
  ncclResult_t state_of(ncclComm_t comm);
  ncclComm_t comm_ = nullptr;
  ncclComm_t fast_ = nullptr;
  bool busy_ = false;
  std::shared_ptr<std::atomic<bool>> abort_done_;  ///< set by an abort that was begun; shared with its thread
  Deadline abort_limit_{};
};

}  // namespace medley::nccl
