// Operations on CUDA memory: when they may touch it, what waits in streams instead of on the host, and what makes the
// user's stream wait.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <utility>

#include "core/device.hpp"
#include "core/engine.hpp"

namespace medley::core {
namespace {

// Launches that nobody waits for on the host are looked after once for this many: asking an event takes 0.3 to 0.8 µs (H200),
// and one answer settles all that are before it in its stream.
constexpr unsigned look_after = 32;

// Connecting takes up to half a second where many ranks do it at once. A peer that has not come by then may itself wait for
// the collective that is held.
constexpr std::chrono::seconds patience_with_connecting(1);

}  // namespace

/// Opens the device and starts the thread: deadlines must hold though the host may never call in again.
void Engine::use_device(const CommState& comm) {
  if (device_used_.load(std::memory_order_acquire)) return;
  const bool any = std::any_of(comm.lanes.begin(), comm.lanes.end(), [](const auto& lane) { return lane->cuda; });
  if (!any) return;   // admit() says why
  {
    const std::lock_guard opening(thread_mutex_);
    if (device_) return;
    std::shared_ptr<Device> opened = open_device(comm.device);
    const std::lock_guard lock(mutex_);
    device_ = std::move(opened);
  }
  if (thread_allowed_) start_thread();
  device_used_.store(true, std::memory_order_release);
}

/// Throws where a capture forbids the operation.
void Engine::admit_on_device(const CommState& comm, Call& call, const LaneState& lane) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorKind::invalid, fmt::format("{} on comm {} over {}: {}", name(call.op), comm.name, lane.name, why),
                {.op = call.op, .comm = comm.name, .backend = lane.name});
  };
  call.captured = device_->capturing(call.stream);
  if (!call.captured) return;
  if (!lane.in_streams) {
    refuse("CUDA memory is staged by the host, which a graph cannot capture; use nccl, or stop the capture");
  }
  progress_locked();
  if (std::any_of(pending_.begin(), pending_.end(), [](const Operation* operation) {
        return !operation->complete() && operation->lane && operation->lane->in_streams;
      })) {
    refuse("operations issued before the capture are not complete; wait for them on the host first (Work::wait_host)");
  }
}

Operation* Engine::issue_on_device(const std::shared_ptr<CommState>& shared, Call& call, const Options& options) {
  use_device(*shared);
  CommState& comm = *shared;
  Operation* operation = nullptr;
  bool ordered = false;
  {
    const Hold hold(*this);
    if (++launches_ % look_after == 0) progress_locked();   // before the call is counted: it may fail the comm
    const Route* route = &admit(comm, call, options.backend);
    admit_on_device(comm, call, *route->lane);   // where the route is open, all that it may become are staged alike
    comm.count(is_collective(call.op));
    OpenSize open;
    if (comm.sizes) route = &settle_route(comm, call, options.backend, *route, open);
    const Route& chosen = *route;
    operation = enlist_behind(shared, call, options, chosen, std::move(open));
    operation->retain();
    if (!options.async) ordered = order_stream_behind_locked(*operation, call.stream);
  }
  if (options.async || ordered) return operation;
  OperationRef held(operation);
  wait_in_stream(*operation, operation->deadline);
  return held.release();
}

/// Of two operations that run in streams: whether the later one must be launched after the earlier one. Where they
/// conflict it then waits for it in its stream.
bool Engine::depend_in_streams(Operation& earlier, Operation& operation, bool conflict) {
  if (conflict) {
    earlier.retain();
    operation.follows.push_back(&earlier);
    return true;
  }
  // Comms that share a device must be launched in one order on all ranks, so what is held back holds back the rest.
  if (earlier.collective() || operation.collective()) return earlier.collective() && operation.collective();
  // Messages of one pair and direction share a communicator and its stream, whatever their tags.
  return earlier.lane == operation.lane && earlier.call.op == operation.call.op &&
         earlier.call.root == operation.call.root;
}

std::vector<Transfer*> Engine::running_before(const Operation& operation) const {
  std::vector<Transfer*> running;
  for (const Operation* earlier : operation.follows) {
    if (!earlier->complete() && earlier->transfer) running.push_back(earlier->transfer);
  }
  return running;
}

void Engine::drop_device_state(Operation& operation) {
  for (Operation* earlier : std::exchange(operation.follows, {})) earlier->release();
  if (operation.before.ready) device_->give_back(std::exchange(operation.before.ready, nullptr));
}

void Engine::note_launch(Operation& operation) {
  operation.launched = operation.transfer->launched();
  if (!operation.launched || !operation.lane->in_streams) return;
  if (operation.collective()) ++operation.lane->in_order;
  // Its stream waits for the event as it was recorded, so that it may be recorded again.
  if (operation.before.ready) device_->give_back(std::exchange(operation.before.ready, nullptr));
}

void Engine::look_for_launch(Operation& operation) {
  note_launch(operation);
  if (operation.launched) let_go(std::exchange(operation.after_start, {}));
}

/// Two ranks that connect for their first message copy to the device in streams of NCCL's own. CUDA gives streams few work
/// queues, and behind a kernel that waits for the peer these copies may wait for ever (docs/guarantees.md).
bool Engine::hold_while_connecting(Operation& message, Operation& collective) {
  if (message.collective() || message.launched || !collective.collective()) return false;
  if (message.after_connecting.empty()) message.patience = std::chrono::steady_clock::now() + patience_with_connecting;
  message.after_connecting.push_back(&collective);
  return true;
}

void Engine::look_for_connection(Operation& message) {
  if (!message.launched && std::chrono::steady_clock::now() < message.patience) return;
  let_go(std::exchange(message.after_connecting, {}));
}

bool Engine::order_stream_behind(Operation& operation, void* stream) {
  const std::lock_guard lock(mutex_);
  note_wait(operation);
  return order_stream_behind_locked(operation, stream);
}

/// Whether the host must still do something for an operation, CUDA calls among it, while one in its stream needs nobody.
bool Engine::left_to_host(const Operation& operation) {
  return !operation.complete() && !(operation.lane && operation.lane->in_streams && operation.launched);
}

/// Whether anything but what is waited for is left to the host. Its peers may need that before they come to what is waited for,
/// and it may need what a host that waits for a stream withholds: CUDA's locks, and time in the engine.
bool Engine::others_left_to_host(const Operation& waited) const {
  const LaneState* lane = waited.lane;
  if (lane && lane->in_streams && pending_.size() == static_cast<std::size_t>(lane->in_order)) return false;
  return std::any_of(pending_.begin(), pending_.end(), [&waited](const Operation* operation) {
    return operation != &waited && operation->group != &waited && left_to_host(*operation);
  });
}

/// True once the stream waits for the operation and the host may wait for the stream, or it is complete without an error.
bool Engine::order_stream_behind_locked(Operation& operation, void* stream) {
  if (!operation.complete() && others_left_to_host(operation)) return false;
  const auto ordered = [stream](Operation& one) {
    if (one.complete()) return !one.error;
    if (one.call.memory != Memory::cuda || !one.launched || !one.transfer || !one.transfer->order(stream)) return false;
    one.source = one.transfer->source();
    one.waited_for = true;
    return true;
  };
  if (operation.lane) return ordered(operation);
  if (operation.error) return false;   // of a member that is gone already; the others are waited for, then it is thrown
  return std::all_of(pending_.begin(), pending_.end(),   // a batch: each of its members
                     [&](Operation* member) { return member->group != &operation || ordered(*member); });
}

/// What a stream waits for was complete for its caller; a context that goes must not break it off, here or on the peers.
void Engine::finish_in_streams(const CommState& comm) {
  const auto unfinished = [&comm](const Operation* operation) {
    return operation->comm.get() == &comm && operation->waited_for && !operation->complete() &&
           std::chrono::steady_clock::now() < operation->deadline;
  };
  for (bool left = device_used_; left; sched_yield()) {
    const Hold hold(*this);
    progress_locked();
    left = std::any_of(pending_.begin(), pending_.end(), unfinished);
  }
}

void Engine::compare_order_of(const CommState& comm) {
  const bool any = std::any_of(comm.lanes.begin(), comm.lanes.end(), [](const auto& lane) { return lane->in_streams; });
  const std::lock_guard lock(mutex_);
  if (comm.checked && any) in_streams_.emplace(comm.name, 0);
}

IssuedBefore Engine::note_issue(const Operation& operation) {
  if (!operation.lane->in_streams) return {};
  const IssuedBefore before = in_streams_;
  ++in_streams_[operation.comm->name];
  return before;
}

bool Engine::all_in_streams() const {
  return !pending_.empty() &&
         std::none_of(pending_.begin(), pending_.end(), [](const Operation* operation) { return left_to_host(*operation); });
}

}  // namespace medley::core
