// An issued operation as the engine keeps it until it is complete: its call, its dependencies, its result.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <medley/backend.hpp>
#include <medley/sdk/intrusive_list.hpp>
#include <medley/sdk/recycled.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/online_ticket.hpp"
#include "engine/value_exchange.hpp"
#include "fuse/fusion.hpp"

namespace medley::core {

class CommState;
struct LaneState;

/// A range of memory that an operation reads or writes.
struct Access {
  const std::byte* begin;
  const std::byte* end;
  bool write;
};

/// All memory that an operation touches. Two ranges, stored inline, unless it is a v-collective or a fused message.
class Accesses {
 public:
  void clear() {
    count_ = 0;
    sorted_ = false;
    many_.clear();
  }
  void assign(const Access& access) {
    few_[0] = access;
    count_ = 1;
    sorted_ = false;
    if (!many_.empty()) many_.clear();
  }
  void push_back(const Access& access) {
    if (count_ < few_.size()) {
      few_[count_] = access;
    } else {
      if (many_.empty()) many_.assign(few_.begin(), few_.end());
      many_.push_back(access);
    }
    ++count_;
  }
  std::size_t size() const { return count_; }
  /// Promises that the first `reads` are reads and the others writes, and that the ranges of each kind are in order and
  /// do not overlap.
  void mark_sorted(std::size_t reads) {
    sorted_ = true;
    reads_ = reads;
  }
  bool sorted() const { return sorted_; }
  /// Of sorted ones: whether one of them conflicts with this access.
  bool conflict_in_order(const Access& access) const {
    return overlaps(begin() + reads_, end(), access) || (access.write && overlaps(begin(), begin() + reads_, access));
  }
  const Access* begin() const { return many_.empty() ? few_.data() : many_.data(); }
  const Access* end() const { return begin() + count_; }

 private:
  static bool overlaps(const Access* first, const Access* last, const Access& access) {
    const Access* const at = std::lower_bound(
        first, last, access.begin, [](const Access& one, const std::byte* begin) { return one.end <= begin; });
    return at != last && at->begin < access.end;
  }
  std::array<Access, 2> few_;
  std::vector<Access> many_;
  std::size_t count_ = 0, reads_ = 0;
  bool sorted_ = false;
};

/// Reference-counted: the engine holds one reference until the operation is complete, every Work holds one, and so does
/// every operation that it waits for.
/// All fields but `references` and `state` are guarded by the engine's lock.
class Operation final : public Recycled<Operation>, public Polled {
 public:
  enum class State : std::uint8_t { waiting, active, complete };

  // What a message uses comes first, in as few cache lines as possible: dozens may be pending, and each is looked at when it
  // is issued and when it ends.
  std::atomic<int> references{1};
  std::atomic<int> source{-1};  ///< source of a receive, once known; relaxed: a number alone, and final once complete
  std::atomic<State> state{State::waiting};  ///< complete is stored last, with release
  bool needs_host = false;                   ///< counted by StreamOrder: the host still has work to do for it
  bool started_at_issue = false;             ///< a message on host memory that nothing held (engine_message.cpp)
  /// It ended well and left nothing in its lists: OperationPool keeps it for the next message
  bool reusable = false;
  bool launched = false;           ///< started, and on CUDA memory also in its stream
  bool stream_waits = false;       ///< wait() has made a stream wait for it: complete for the caller
  bool orphaned = false;           ///< an operation that it waited for failed before it started
  bool followed = false;           ///< one of the three lists of dependents below is or was not empty
  bool awaited_elsewhere = false;  ///< as Work::awaited_elsewhere() says
  int slot = -1;                   ///< slot on the status board
  /// Where the hazard index has its only range, while that is in its short list
  std::uint32_t few_at = 0;
  std::shared_ptr<CommState> comm;
  LaneState* lane = nullptr;  ///< while `open_route` is set, a placeholder
  Transfer* transfer = nullptr;
  std::uint64_t sequence = 0;
  std::uint64_t record = 0;          ///< its number in the recorder
  std::uint64_t order = 0;           ///< order of issue in this engine
  std::uint64_t last_dependent = 0;  ///< the order of the last operation that was made to follow this one
  Deadline deadline{};
  ListLinks<Operation> among_pending;  ///< in order of issue
  Accesses accesses;
  Call call;
  std::vector<std::function<void()>> callbacks;  ///< called, without the lock, when it is complete
  ListLinks<Operation> among_active;             ///< those that are polled

  std::string algorithm;                  ///< storage of the call's algorithm
  std::shared_ptr<std::int64_t[]> lists;  ///< storage of the call's counts and offsets
  Dependencies dependencies{};            ///< storage of the call's dependencies
  std::optional<Error> error;
  OpenRoute open_route;          ///< what the ranks have yet to agree on before its route is decided
  OnlineTicket online;           ///< where routes are measured in the running job
  std::uint64_t timed_from = 0;  ///< of a timed operation: when it started
  /// Operations whose streams this one's stream waits for; a reference each
  std::vector<Operation*> follows;
  int blockers = 0;                     ///< holds: earlier operations, an undecided route, the consistency check
  std::vector<Operation*> after_start;  ///< operations that wait for this one to start; a reference each
  /// Operations that wait for all launches of this one, but not beyond `launch_limit`
  std::vector<Operation*> after_launches;
  Deadline launch_limit{};
  std::vector<Operation*> after_completion;  ///< operations that wait for this one to complete; a reference each
  bool awaiting_check = false;               ///< held until the consistency checker confirms it
  Operation* group = nullptr;                ///< the batch it belongs to
  std::vector<Operation*> batch;             ///< if it is a batch: its members, a reference each
  int members = 0;                           ///< if it is a batch: how many members are not complete
  std::shared_ptr<fuse::Fusion> fusion;      ///< if it is a fused message: its tensors
  /// If it carries tensors of a fuse scope: the operations of their Works, a reference each
  std::vector<Operation*> tensors;
  /// By automatic fusion; it starts inside the message that the ranks agree on
  bool collected = false;
  std::string named_backend;  ///< of a collected operation, if its call named one
  /// The operation of a Work in a fuse scope; once issued, `batch` is what carries it
  bool of_tensor = false;

  /// If `awaited_elsewhere`: its record and those of its batch, which stay known once the batch is given up
  std::vector<std::uint64_t> awaited_records;

  bool collective() const { return is_collective(call.op); }
  /// The ranks that it waits for, as far as known.
  std::vector<int> awaited() const {
    if (open_route) return open_route.awaited();
    if (!transfer) return {};
    std::vector<int> ranks = transfer->awaited();
    // A lane inside a host counts in its own way
    if (!ranks.empty() && !collective() && call.root >= 0) ranks = {call.root};
    return ranks;
  }
  // Pairs with Engine::finish()
  bool complete() const { return state.load(std::memory_order_acquire) == State::complete; }
  bool ended_well() const { return complete() && !error; }  // the error is final by then
  // Relaxed: whoever copies a reference holds one
  void retain() noexcept { references.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    // The holder of the only reference needs no atomic subtraction, since nobody else can add one. Both accesses: pairs
    // with the subtraction of others, whose last uses come first.
    const bool only = references.load(std::memory_order_acquire) == 1;
    if (only || references.fetch_sub(1, std::memory_order_acq_rel) == 1) dispose();
  }

 private:
  void dispose() noexcept;
};

/// Operations of messages that are complete, kept constructed by the thread that dropped the last reference: to
/// construct and destroy one takes as long as to send a message.
class MEDLEY_API OperationPool {
 public:
  /// One that is as after its construction but for `call`, `deadline`, `accesses` and `state`, which every message
  /// sets.
  static Operation* take();
  static void keep(Operation& operation) noexcept;
};

inline void Operation::dispose() noexcept {
  if (reusable) return OperationPool::keep(*this);
  delete this;
}

using PendingList = IntrusiveList<Operation, &Operation::among_pending>;
using ActiveList = IntrusiveList<Operation, &Operation::among_active>;

struct ReleaseOperation {
  void operator()(Operation* operation) const noexcept { operation->release(); }
};
/// One reference.
using OperationRef = std::unique_ptr<Operation, ReleaseOperation>;

}  // namespace medley::core
