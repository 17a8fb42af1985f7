// The engine of a context: issues, completes, awaits and fails operations. Its parts: Scheduler (what may start when),
// Progress (polling), Backoff (how to wait), StatusBoard (what other ranks may query). It has one lock. No thread
// blocks while holding it, and every library is called under it.
#pragma once

#include <deque>
#include <functional>
#include <medley/backend.hpp>
#include <medley/buffer.hpp>
#include <medley/options.hpp>
#include <medley/route_decision.hpp>
#include <medley/sdk/biased_lock.hpp>
#include <medley/sdk/fork_guard.hpp>
#include <medley/sdk/memory_barrier.hpp>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "engine/backoff.hpp"
#include "engine/comm_state.hpp"
#include "engine/consistency_checker.hpp"
#include "engine/control_events.hpp"
#include "engine/diagnosis.hpp"
#include "engine/operation.hpp"
#include "engine/progress.hpp"
#include "engine/progress_thread.hpp"
#include "engine/scheduler.hpp"
#include "engine/status_board.hpp"
#include "record/recorder.hpp"

namespace medley {
class Device;
}

namespace medley::core {

/// For a complete transfer on a comm with exact sizes: throws if it received another number of bytes than was posted.
[[gnu::cold]] void throw_if_other_size(const CommState& comm, const Call& call, const Transfer& transfer);
inline void check_size(const CommState& comm, const Call& call, const Transfer& transfer) {
  if (comm.exact && call.op == Op::recv) throw_if_other_size(comm, call, transfer);
}
/// The sender of a complete receive. A lane inside a host counts ranks in its own way, so only any_source asks the
/// transfer.
inline int sender_of(const Call& call, const Transfer& transfer) {
  return call.op == Op::recv && call.root >= 0 ? call.root : transfer.source();
}

/// Inside a host, an operation up to here is one copy of a cache line.
inline constexpr std::int64_t cache_line_bytes = 64;

class Engine final : private Progress::Events {
 public:
  Engine() : scheduler_([this](Operation& operation) { start(operation); }), progress_(*this) {}
  ~Engine();
  /// Call before the first comm is made.
  void record_to(std::unique_ptr<Recorder> recorder) { recorder_ = std::move(recorder); }
  Recorder* recorder() { return recorder_.get(); }
  /// The number of a new comm in records.
  std::uint32_t note_comm(const std::string& name, const std::vector<int>& world_ranks);
  /// Issues an operation and, unless it is async, waits for it. Returns null when it is already complete; otherwise a
  /// reference that the caller owns. `source` gets the sender of a completed receive. The route fills in the call's
  /// algorithm.
  Operation* issue(const std::shared_ptr<CommState>& comm, Call& call, const Options& options, int& source);
  /// The same for a send or a receive on host memory, by a shorter way (engine_message.cpp).
  Operation* issue_message(const std::shared_ptr<CommState>& comm, Call& call, const Options& options, int& source);
  /// A send on host memory without algorithm or codec: true if the message has left, which is its end
  /// (engine_send.cpp). False, with nothing done: issue it.
  bool send_now(CommState& comm, const ConstBuffer& buffer, int to, const Options& options);
  /// An async receive without algorithm or codec, by a short way (engine_receive.cpp). `pending` is as the result of
  /// issue(). False, with nothing done: issue it.
  bool receive(const std::shared_ptr<CommState>& comm, const Buffer& buffer, int from, const Options& options,
               Operation*& pending, int& source);
  /// Issues several operations as a batch; the result is complete when all are. If one cannot be issued after others
  /// were, the result is complete when those are, with its error.
  Operation* issue_group(const std::shared_ptr<CommState>& comm, std::vector<Call>& calls, const Options& options);
  /// Issues collectives in order, some of them fused messages (engine_fuse.cpp); all or none. The result is complete
  /// when all are.
  Operation* issue_list(const std::shared_ptr<CommState>& comm, std::vector<fuse::Composed>& composed,
                        const Options& options);
  /// Opens a fuse scope on the comm, or one more inside it; closing the last issues what was collected.
  void open_fuse(const std::shared_ptr<CommState>& comm);
  void close_fuse(const std::shared_ptr<CommState>& comm);
  /// Adds a call to the comm's open scope and returns the operation of its Work. Throws where it overlaps a collected
  /// tensor.
  Operation* collect(const std::shared_ptr<CommState>& comm, const Call& call, const Options& options);
  /// Issues what was collected. An error completes the collected operations and is thrown.
  void flush_fused(const std::shared_ptr<CommState>& comm);
  /// Waits until it is complete and throws its error.
  void wait(Operation& operation, Deadline deadline);
  /// On CUDA memory: makes the operation's stream wait for it instead, as soon as that is possible.
  void wait_in_stream(Operation& operation, Deadline deadline);
  /// The same for any stream, with a time limit; returns whether that stream waits now. Throws the operation's error.
  bool wait_in_stream_until(Operation& operation, void* stream, Deadline until);
  /// Waits with a time limit and returns whether the operation is complete. Throws its error.
  bool wait_until(Operation& operation, Deadline until);
  /// For records: as Work::awaited_elsewhere() and awaited_since().
  void note_awaited_elsewhere(Operation& operation) noexcept;
  void note_awaited_since(const Operation& operation, Deadline moment) noexcept;
  /// Registers a callback for completion; false when it is complete already.
  bool call_back(Operation& operation, std::function<void()>& callback);
  /// Makes progress on everything that is pending.
  void progress();
  /// Whether nothing is pending, so that no polling is needed.
  bool idle() {
    const std::lock_guard lock(mutex_);
    return idle_locked();
  }
  /// Whether the first operation on CUDA memory may start the progress thread.
  void allow_thread(bool allowed) { thread_allowed_ = allowed; }
  /// The device of operations on CUDA memory; the first of them opens it.
  Device& device() const { return *device_; }
  const std::shared_ptr<Device>& shared_device() const { return device_; }
  /// Starts the progress thread. Whoever starts it stops it, before the comms are closed.
  void start_thread();
  void stop_thread();
  /// The body of that thread: returns when nothing is pending.
  void run_progress_thread(ProgressThread& thread);
  /// Makes all operations of a comm fail, now and later, and announces it to the other ranks.
  void fail(CommState& comm, const Error& why);
  /// Returns when the lanes of the comm no longer use any memory, if it has failed: at once if it has not.
  void await_abort(CommState& comm);
  /// The same when another rank announced it: announces nothing.
  void fail_from_peer(CommState& comm, const Error& why);
  /// What this rank is doing, for ranks that ask.
  StatusBoard& board() { return board_; }
  const StatusBoard& board() const { return board_; }
  /// Check mode: all ranks called the same collective; it may start.
  void allow_start(CommState& comm, std::uint64_t sequence);
  /// Check mode: enables comparison of the issue order of comms with stream lanes. The second function counts an
  /// operation and returns what was issued before it; it is called under the lock.
  void compare_order_of(const CommState& comm);
  IssuedBefore note_issue(const Operation& operation);
  /// Informs the backends, under the lock.
  void rank_lost(int world_rank, const std::vector<Backend*>& backends);
  /// Whether a pending operation of the comm waits for this member.
  bool awaits(const CommState& comm, int member);
  /// How the engine announces to the other ranks that a comm failed, and asks them what they are doing. The first is
  /// called under the lock, the second without it.
  struct Hooks {
    std::function<void(const CommState& comm, const Error& why)> announce_failure;
    std::function<Diagnosis(const CommState& comm, const Operation& waiting)> diagnose_stall;
    /// Check mode: sends the call to the comm's checker. Under the lock.
    std::function<void(const CommState& comm, const Operation& operation)> ask_checker;
    /// What the control thread has posted for the engine's threads, and how they handle it. Without the lock.
    const ControlEvents* events = nullptr;
    std::function<void()> act_on_events;
  };
  void set_hooks(Hooks outside) { hooks_ = std::move(outside); }
  /// When its context is destroyed: fails the pending operations of the comm and destroys its lanes.
  void close(CommState& comm);
  /// The latest decisions about routes in the running job.
  std::vector<RouteDecision> route_decisions();
  /// Before the comms of a context are closed: delivers the values that their ranks exchange, which takes no longer
  /// than a peer takes to poll.
  void finish_value_exchange();
  /// The last reference to a comm is gone. Destroys its lanes under the lock: at once, or in a later progress() where
  /// the calling thread holds the lock or a lane has not delivered everything.
  void reclaim(CommState* comm) noexcept;
  /// Destroys all lanes whose destruction was deferred; before their backends are destroyed.
  void reclaim_all() noexcept;
  /// Throws when the comm has failed, or a member is known to be lost. For loops that wait outside the engine.
  void check(CommState& comm);
  /// Throws in a child forked from the process that made the context. Every entry point calls this before it takes the
  /// lock, which another thread may have held at the fork.
  void refuse_forked_child() const {
    if (!fork_guard_.here()) [[unlikely]]
      throw_forked_child();
  }

 private:
  [[noreturn]] static void throw_forked_child();
  /// Holds the lock. Releasing it runs the callbacks of operations completed meanwhile, which may call in again.
  class Hold {
   public:
    [[gnu::always_inline]] explicit Hold(Engine& engine) : engine_(engine) { engine_.mutex_.lock(); }
    [[gnu::always_inline]] ~Hold() {
      if (!engine_.some_complete_) [[likely]] {
        engine_.mutex_.unlock();
        return;
      }
      engine_.leave_with_completions();
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    Engine& engine_;
  };
  /// Releases the lock where operations have completed under it.
  void leave_with_completions();
  /// Handles what the control thread has posted. Every entry point calls this before it takes the lock.
  void handle_events() {
    if (hooks_.events && hooks_.events->any()) [[unlikely]]
      hooks_.act_on_events();
  }
  void show_awaited();
  const Route& admit(CommState& comm, Call& call, std::string_view backend) const;
  const Route& settle_route(CommState& comm, Call& call, std::string_view backend, const Route& admitted,
                            OpenRoute& open, OnlineTicket& ticket);
  void note_decisions(CommState& comm);
  const Route& route(CommState& comm, const Call& call, std::string_view backend) const;
  static const Route* route_of_exact(const CommState& comm, const Call& call);
  static void count(CommState& comm, const Call& call, std::string_view backend);
  const Route& admit_message(CommState& comm, Call& call, std::string_view backend) const;
  /// The route of a message that names no algorithm, where it is known without a look at its size; else null. A named
  /// lane was found by name and memory, which is host memory here, so the same name leads to it again.
  [[gnu::always_inline]] const Route* plain_route(const CommState& comm, Op op, DType dtype,
                                                  std::string_view backend) const {
    if (comm.failure || !collecting_.empty() || comm.message_sizes) [[unlikely]]
      return nullptr;
    if (comm.last_named && same_name(comm.last_named->name, backend)) return &comm.last_named->named;
    if (!backend.empty() || comm.exact) return nullptr;
    const Route* const found = comm.routing.of_messages(op, dtype);
    return found && found->algorithm.empty() ? found : nullptr;
  }
  static void count_message(CommState& comm, const Call& call, std::string_view backend);
  Operation* issue_alone(const std::shared_ptr<CommState>& comm, Call& call, const Options& options, const Route& route,
                         int& source);
  bool end_early(Operation& group, std::size_t missing, const Error& error);
  Operation* wait_for_issued(Operation* operation, const Options& options, int& source);
  Record* record_message(const CommState& comm, const Call& call, const Route& route, bool async, std::uint64_t issued,
                         std::uint64_t completed);
  Transfer* try_inline(CommState& comm, const Call& call, const std::shared_ptr<std::int64_t[]>& lists,
                       const Route& route, const Options& options, int& source, Record*& recorded);
  Operation* start_message(const std::shared_ptr<CommState>& comm, const Call& call, const Options& options,
                           const Route& route, const Access& access, int& source);
  Operation* poll_started(Operation& message, const std::shared_ptr<CommState>& comm, const Options& options,
                          const Route& route, const Access& access, Transfer* transfer, std::uint64_t begun,
                          int& source);
  Operation* fail_taken(Operation& message, const std::shared_ptr<CommState>& comm, const Options& options,
                        const Route& route, Transfer* transfer, std::uint64_t begun);
  void adopt_message(Operation& message, const std::shared_ptr<CommState>& shared, const CommState& comm,
                     const Options& options, const Access& access, LaneState& lane, Transfer* transfer,
                     std::uint64_t begun);
  void end_at_issue(const CommState& comm, const Call& call, const Options& options, const Route& route,
                    const Access& access, std::uint64_t begun);
  Operation* fail_message(const std::shared_ptr<CommState>& comm, const Call& call, const Options& options,
                          const Route& route, Transfer* transfer, std::uint64_t begun, const Error& error);
  void settle_message(Operation& message);
  OperationRef make_operation(const std::shared_ptr<CommState>& comm, const Call& call, const Options& options,
                              LaneState& lane, std::uint64_t begun);
  Deadline deadline_of(std::chrono::nanoseconds duration, std::uint64_t begun) {
    if (duration == last_deadline_.duration &&
        begun - last_deadline_.begun < last_deadline_.until - last_deadline_.begun) [[likely]]
      return last_deadline_.deadline;
    return new_deadline(duration, begun);
  }
  Deadline new_deadline(std::chrono::nanoseconds duration, std::uint64_t begun);
  Operation* enlist(OperationRef made, const Options& options);
  void issue_member(Operation& group, const Call& call, const Options& options, const Route& route);
  Operation* enlist_behind(const std::shared_ptr<CommState>& comm, const Call& call, const Options& options,
                           const Route& chosen, OpenRoute open, const OnlineTicket& ticket);
  void queue(Operation& operation, const Route& chosen, const Options& options, std::uint64_t begun);
  void refuse_collected(const CommState& comm, const Call& call) const;
  void refuse_unissued(Operation& operation);
  std::vector<fuse::Composed> with_one_route_each(CommState& comm, std::vector<fuse::Composed> composed) const;
  static void take_fused_algorithm(Call& call, const LaneState& lane, int ranks);
  const Route& admit_series(CommState& comm, fuse::Composed& series) const;
  using Carried = std::function<void(Operation& carrier, const fuse::Composed& composed)>;
  void issue_composed(const std::shared_ptr<CommState>& comm, std::vector<fuse::Composed>& composed,
                      const Options& options, const Carried& carried);
  void flush_locked(const std::shared_ptr<CommState>& comm);
  // Automatic fusion (engine_auto_fuse.cpp).
  static bool collects(const CommState& comm, const Call& call, const Options& options);
  Operation* collect_behind(const std::shared_ptr<CommState>& comm, const Call& call, const Options& options,
                            const Route& chosen);
  bool seek_agreement(CommState& comm);
  void take_agreement(Operation& agreement);
  void issue_agreed(CommState& comm, std::size_t count);
  void carry(Operation& message, const std::vector<Operation*>& members);
  Operation* enlist_internal(const std::shared_ptr<CommState>& comm, const Call& call, const Route& route);
  void finish_tensors(Operation& operation);
  Operation* issue_on_device(const std::shared_ptr<CommState>& comm, Call& call, const Options& options);
  void use_device(const CommState& comm);
  void admit_on_device(const CommState& comm, Call& call, const LaneState& lane);
  /// Null where nothing is recorded. Valid while the lock is held.
  Record* record(const CommState& comm, const Call& call, const Route& route, const Options& options,
                 std::uint64_t issued, std::uint64_t started = 0, std::uint64_t completed = 0);
  void note_route(const Operation& operation, const Route& route) noexcept;
  void note_start(std::uint64_t record, std::uint64_t moment) noexcept;
  /// From here to the operation's end, nothing overlaps the time.
  void note_wait(const Operation& operation) noexcept;
  template <typename Visit>
  void visit_records(const Operation& operation, const Visit& visit) noexcept;
  void note_batch_awaited_elsewhere(Operation& operation) noexcept;
  void note_device_times(std::uint64_t record, const DeviceTimes& times) noexcept;
  void note_end(std::uint64_t record, bool failed) noexcept;
  void note_end(Record* record, bool failed) noexcept;
  void note_message_end(std::uint64_t record, std::uint64_t moment) noexcept {
    Record* const ended = record ? recorder_->find(record) : nullptr;
    if (!ended) return;
    ended->completed = moment;
    write_barrier();  // for readers of a running job, and of a killed one
    ended->state = RecordState::complete;
  }
  bool routes_need_polls() const;
  bool assign_lane_orders(CommState& comm);
  bool take_agreed_route(Operation& operation);
  void await_check(Operation& operation);
  static std::vector<Transfer*> running_before(const Operation& operation);
  bool order_stream_behind(Operation& operation, void* stream);
  bool order_stream_behind_locked(Operation& operation, void* stream);
  void finish_in_streams(const CommState& comm);
  void start(Operation& operation);
  static Transfer* start_transfer(Operation& operation);
  void look_for_launch(Operation& operation);
  void adopt(Operation& operation, Transfer* transfer, std::uint64_t started);
  void watch_undelivered(LaneState& lane);
  void settle(Operation& operation);
  void complete(Operation& operation);
  void finish(Operation& operation);
  void finish_with_error(Operation& operation, const Error& error);
  void on_complete(Operation& operation) override {
    check_size(*operation.comm, operation.call, *operation.transfer);  // throws into on_error()
    operation.started_at_issue ? settle_message(operation) : settle(operation);
  }
  void on_error(Operation& operation, const Error& error) override { finish_with_error(operation, error); }
  void on_poll(Operation& operation) override { look_for_launch(operation); }
  void on_lane_error(LaneState& lane, const Error& error) override;
  /// True if anything moved.
  bool progress_locked(Progress::Extent extent = Progress::Extent::some);
  void progress_until(const std::function<bool()>& condition);
  void fail_locked(CommState& comm, const Error& why, bool announce = true);
  bool finish_aborts();
  void end_operations_of(CommState& comm);
  void reclaim_closed(bool hurry = false) noexcept;
  static bool may_destroy_lanes(CommState& comm, bool hurry) noexcept;
  void destroy_lanes(CommState& comm) noexcept;
  class Caller;
  Poll advance(Operation& operation, bool first, Waiting& waiting);
  enum class Verdict { go_on, late };
  Verdict expire(Operation& operation, Deadline deadline, Backoff& backoff);
  static Operation& blamed_for(Operation& operation);
  void fail_late(Operation& operation);
  OperationRef expire_all(Backoff& backoff);
  void expire_in_streams(Backoff& backoff);
  void look_for_lost(CommState& comm, Deadline now);
  bool sleep(Operation* operation, Deadline deadline, const Waiting& waiting, Backoff& backoff);
  bool leave_to_callers(ProgressThread& thread);
  /// Where a wait takes place: on the host, or in a stream if one is given.
  using WaitIn = std::optional<void*>;
  void poll_briefly(Operation& operation);
  bool poll_until_complete(Operation& operation, Deadline deadline, Deadline until, WaitIn stream);
  OperationRef unfinished_member(const Operation& list, std::size_t& looked);
  bool poll_patiently(Operation& operation, Deadline deadline, Deadline until, WaitIn stream);
  bool idle_locked() const { return pending_.empty() && !progress_.undelivered() && !ending_; }

  BiasedLock mutex_;
  std::unique_ptr<Recorder> recorder_;
  Hooks hooks_;
  StatusBoard board_;
  ForkGuard fork_guard_;
  PendingList pending_;  ///< issued and not complete, in order of issue; a reference each
  Scheduler scheduler_;
  Progress progress_;
  std::set<CommState*> open_routes_;                 ///< comms with collectives that wait for their lane order
  std::vector<CommState*> aborting_;                 ///< comms whose lanes have not finished their abort
  std::vector<std::unique_ptr<CommState>> closing_;  ///< comms without references, whose destruction is deferred
  std::vector<const CommState*> collecting_;         ///< comms with an open fuse scope
  bool ending_ = false;                              ///< aborting_ or closing_ is not empty; one load for idle_locked()
  bool some_complete_ = false;                       ///< since the lock was taken: releasing it wakes sleepers
  /// Callbacks of complete operations, run when the lock is released
  std::vector<std::function<void()>> due_callbacks_;
  std::vector<EventCount*> sleepers_;  ///< threads asleep in wait()
  Deadline last_check_{};              ///< when the deadlines of all pending operations were checked last
  bool self_send_hinted_ = false;      ///< once is enough
  /// Threads inside wait(); relaxed: the last one leaves under the lock, others only save polls
  std::atomic<int> callers_{0};
  std::mutex thread_mutex_;  ///< guards starting and stopping the thread
  std::unique_ptr<ProgressThread> thread_;
  std::shared_ptr<Device> device_;  ///< opened by the first operation on CUDA memory
  /// Its acquire in use_device() pairs with the release there: device_ is set before
  std::atomic<bool> device_used_{false};
  /// The deadline last computed: of operations that may take `duration` and are issued in the same millisecond.
  struct {
    std::chrono::nanoseconds duration{-1};
    std::uint64_t begun = 0, until = 0;  ///< that millisecond, in ticks
    Deadline deadline{};
  } last_deadline_;
  std::deque<RouteDecision> decisions_;  ///< about routes in the running job, the latest
  unsigned launches_ = 0;                ///< number of launches on CUDA memory
  IssuedBefore order_checked_;           ///< in check mode: collectives issued on each comm that has a stream lane
  std::atomic<bool> thread_allowed_{true};
};

inline std::uint64_t number_of(const Record* record) { return record ? record->index : 0; }

/// Puts the operation, its comm, its sequence number and its backend in front of the error.
Error with_context(const Error& error, const CommState& comm, const Call& call, std::uint64_t sequence,
                   std::string_view backend);
Error with_context(const Error& error, const Operation& operation);

/// Whether this error in a call makes the comm unusable. A collective that failed on one rank leaves the others in the
/// middle of it. A message concerns its own call alone if the call is wrong, a library lacks it, or its sender sent too
/// much; where sizes are exact, the sender must learn of that too.
bool ends_comm(const CommState& comm, const LaneState& lane, const Call& call, const Error& error);
/// An error of a lane, with the ranks of its comm.
Error in_ranks_of_comm(const LaneState& lane, const Error& error);

}  // namespace medley::core
