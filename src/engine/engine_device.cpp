// Operations on CUDA memory: when they may touch it, what waits in streams instead of on the host, and how the user's
// stream waits for them.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <medley/sdk/device.hpp>
#include <utility>

#include "compress/spec.hpp"
#include "engine/engine.hpp"
#include "route/pair_name.hpp"

namespace medley::core {
namespace {

// Launches that no host thread waits for are checked once per this many: querying an event takes 0.3 to 0.8 µs (H200),
// and one answer completes all earlier ones in its stream.
constexpr unsigned look_after = 32;

}  // namespace

/// Opens the device and starts the thread: deadlines must hold even if the host never calls in again.
void Engine::use_device(const CommState& comm) {
  if (device_used_.load(std::memory_order_acquire)) return;
  const bool any = std::any_of(comm.lanes.begin(), comm.lanes.end(), [](const auto& lane) { return lane->cuda; });
  if (!any) return;  // admit() reports why
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

/// Throws where stream capture forbids the operation.
void Engine::admit_on_device(const CommState& comm, Call& call, const LaneState& lane) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorKind::invalid, fmt::format("{} on comm {} over {}: {}", name(call.op), comm.name, lane.name, why),
                {.op = call.op, .comm = comm.name, .backend = lane.name});
  };
  if (lane.in_streams && compress::is_compressed(call.algorithm) && !device_->has_codecs()) {
    refuse("Medley's CUDA part was built without kernels of compression; name a host backend, which stages it");
  }
  call.captured = device_->capturing(call.stream);
  if (!call.captured) return;
  if (route::is_made_of_two(lane.name))
    refuse("a graph cannot capture a route over two libraries; use nccl, or stop the capture");
  if (!lane.in_streams) {
    refuse("CUDA memory is staged by the host, which a graph cannot capture; use nccl, or stop the capture");
  }
  if (compress::is_compressed(call.algorithm))
    refuse("a graph cannot capture a compressed collective; stop the capture, or give .compress = \"none\"");
  progress_locked();
  if (std::any_of(pending_.begin(), pending_.end(),
                  [](const Operation& operation) { return operation.lane->ordered_on_device(); })) {
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
    if (++launches_ % look_after == 0) progress_locked();  // before the call is counted: it may fail the comm
    const Route* route = &admit(comm, call, options.backend);
    admit_on_device(comm, call, *route->lane);  // where the route is open, all its candidates stage alike
    count(comm, call, options.backend);
    OpenRoute open;
    OnlineTicket ticket;
    if (comm.agrees_on_routes) route = &settle_route(comm, call, options.backend, *route, open, ticket);
    const Route& chosen = *route;
    operation = enlist_behind(shared, call, options, chosen, std::move(open), ticket);
    if (!options.async) ordered = order_stream_behind_locked(*operation, call.stream);
  }
  if (options.async || ordered) return operation;
  OperationRef held(operation);
  wait_in_stream(*operation, operation->deadline);
  return held.release();
}

std::vector<Transfer*> Engine::running_before(const Operation& operation) {
  std::vector<Transfer*> running;
  for (const Operation* earlier : operation.follows) {
    if (!earlier->complete() && earlier->transfer) running.push_back(earlier->transfer);
  }
  return running;
}

/// Whether its work is in its stream now, so that others may be ordered behind it.
void Engine::look_for_launch(Operation& operation) {
  operation.launched = operation.transfer->launched();
  if (!operation.launched) return;
  // A stream waits for the event as it was recorded, so the event may be recorded again.
  if (operation.lane->in_streams && operation.dependencies.ready)
    device_->release_event(std::exchange(operation.dependencies.ready, nullptr));
  scheduler_.launched(operation);
}

bool Engine::order_stream_behind(Operation& operation, void* stream) {
  const std::lock_guard lock(mutex_);
  note_wait(operation);
  return order_stream_behind_locked(operation, stream);
}

/// True once the stream waits for the operation and the host may wait for the stream, or it is complete without an
/// error.
bool Engine::order_stream_behind_locked(Operation& operation, void* stream) {
  if (!operation.complete() && scheduler_.streams().others_need_host(operation)) return false;
  const auto ordered = [stream](Operation& one) {
    if (one.complete() || one.error) return one.complete() && !one.error;
    if (one.call.memory != Memory::cuda || !one.launched || !one.transfer || !one.transfer->order(stream)) return false;
    one.source = sender_of(one.call, *one.transfer);
    one.stream_waits = true;
    return true;
  };
  if (operation.lane) return ordered(operation);
  if (operation.error) return false;  // error of a complete member; the others are awaited, then it is thrown
  return std::all_of(operation.batch.begin(), operation.batch.end(),
                     [&](Operation* member) { return ordered(*member); });
}

/// An operation that a stream waits for counts as complete for its caller; destroying a context must not cancel it,
/// here or on the peers.
void Engine::finish_in_streams(const CommState& comm) {
  const auto unfinished = [&comm](const Operation& operation) {
    return operation.comm.get() == &comm && operation.stream_waits &&
           std::chrono::steady_clock::now() < operation.deadline;
  };
  for (bool left = device_used_; left; sched_yield()) {
    const Hold hold(*this);
    progress_locked();
    left = std::any_of(pending_.begin(), pending_.end(), unfinished);
  }
}

void Engine::compare_order_of(const CommState& comm) {
  const bool any =
      std::any_of(comm.lanes.begin(), comm.lanes.end(), [](const auto& lane) { return lane->ordered_on_device(); });
  const std::lock_guard lock(mutex_);
  if (comm.checked && any) order_checked_.emplace(comm.name, 0);
}

IssuedBefore Engine::note_issue(const Operation& operation) {
  if (!operation.lane->ordered_on_device()) return {};
  const IssuedBefore before = order_checked_;
  ++order_checked_[operation.comm->name];
  return before;
}

}  // namespace medley::core
