#include "engine/scheduler.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "compress/spec.hpp"
#include "engine/comm_state.hpp"

namespace medley::core {
namespace {

// Connecting takes up to half a second where many ranks connect at once. A peer that has not joined a connection, or a
// collective in phases, by then may itself wait for the held collective.
constexpr std::chrono::seconds longest_launching(1);

// Collectives passed to a library at once on one lane: it checks all of them at every poll (Open MPI takes 17 µs for
// each of 2,000 and 66 µs for each of 20,000). docs/proofs.md shows why holding back the others is safe.
constexpr std::size_t most_concurrent = 64;

bool both_in_streams(const Operation& a, const Operation& b) { return a.lane->in_streams && b.lane->in_streams; }

}  // namespace

std::size_t Scheduler::most_started(const LaneState& lane) {
  return lane.filled->concurrent_collectives() ? most_concurrent : 1;
}

/// A reference each: the comm may fail and the caller drop the operation before the earlier one releases it.
void Scheduler::behind(Operation& earlier, Dependents list, Operation& operation) {
  (earlier.*list).push_back(&operation);
  earlier.followed = true;
  hold(operation);
}

void Scheduler::hold(Operation& operation) {
  operation.retain();
  ++operation.blockers;
}

/// Two that touch the same memory. In streams the later one launches after the earlier one and waits for it there.
void Scheduler::behind_memory(Operation& earlier, Operation& operation) {
  if (!both_in_streams(earlier, operation)) return behind(earlier, &Operation::after_completion, operation);
  // Launched collectives of one lane run in its stream, in order. Compressed ones have kernels in another stream.
  const bool one_stream =
      !compress::is_compressed(earlier.call.algorithm) && !compress::is_compressed(operation.call.algorithm);
  if (earlier.launched && earlier.lane == operation.lane && earlier.collective() && operation.collective() &&
      one_stream)
    return;
  earlier.retain();
  operation.follows.push_back(&earlier);
  behind_launch(earlier, operation);
}

void Scheduler::behind_launch(Operation& earlier, Operation& operation) {
  if (!earlier.launched) behind(earlier, &Operation::after_start, operation);
}

void Scheduler::behind_all_launches(Operation& earlier, Operation& collective) {
  if (earlier.after_launches.empty()) earlier.launch_limit = std::chrono::steady_clock::now() + longest_launching;
  behind(earlier, &Operation::after_launches, collective);
}

/// In lane order: libraries match collectives by their order.
void Scheduler::order_in_lane(Operation& operation, bool even_if_dependent) {
  LaneState& lane = *operation.lane;
  std::deque<Operation*>& before = lane.collectives;
  if (!before.empty() && (before.back()->last_dependent != operation.order || even_if_dependent))
    behind_launch(*before.back(), operation);
  if (!lane.in_streams) {
    const std::size_t most = most_started(lane);
    if (before.size() >= most) behind(*before[before.size() - most], &Operation::after_completion, operation);
  }
  before.push_back(&operation);
}

void Scheduler::order_in_streams(Operation& operation) {
  if (operation.collective()) {
    Operation* const before = streams_.last_collective();
    if (before && before->last_dependent != operation.order) behind_launch(*before, operation);
    for (Operation* earlier : streams_.launching()) {
      if (earlier->last_dependent != operation.order) behind_all_launches(*earlier, operation);
    }
  }
}

void Scheduler::order_message(Operation& message) {
  MessageOrder& line = message.lane->messages;
  if (!line.empty()) {
    line.each_before(message.call, [&](Operation& earlier) {
      if (earlier.last_dependent != message.order) behind_launch(earlier, message);
    });
  }
  // On host memory an unblocked operation is launched at once; on a device the library may get it later.
  if (message.blockers > 0 || message.call.memory == Memory::cuda) line.add(message);
}

void Scheduler::add(Operation& operation) {
  operation.order = ++issued_;
  hazards_.add(operation, [&](Operation& earlier) { behind_memory(earlier, operation); });
  LaneState& lane = *operation.lane;
  if (lane.ordered_on_device()) order_in_streams(operation);
  streams_.add(operation);
  if (!operation.collective()) return order_message(operation);
  CommState& comm = *operation.comm;
  // Behind an operation that may yet go to the same lane, no lane order is known. A stream-ordered route is never open.
  if (lane.in_streams || (!operation.open_route && !operation.collected && comm.awaiting_lane_order.empty()))
    return order_in_lane(operation, false);
  comm.awaiting_lane_order.push_back(&operation);
  hold(operation);
}

void Scheduler::add_ahead(Operation& operation) {
  operation.order = ++issued_;
  streams_.add(operation);
  order_in_lane(operation, false);
}

void Scheduler::assign_lane_order(Operation& operation) {
  operation.comm->awaiting_lane_order.pop_front();
  take_lane_order(operation);
}

void Scheduler::take_lane_order(Operation& operation) {
  order_in_lane(operation, true);
  release(operation);
}

void Scheduler::release(Operation& operation) {
  Operation* const one[] = {&operation};
  release_all(one);
}

void Scheduler::release_all(std::span<Operation* const> waiting) {
  for (Operation* next : waiting) {
    if (--next->blockers == 0 && !next->complete()) {
      ready_.push_back(next);
    } else {
      next->release();
    }
  }
  if (starting_) return;  // the loop below is already running further up the stack: a chain may be thousands long
  struct Starting {
    explicit Starting(bool& flag) : flag_(flag) { flag_ = true; }
    ~Starting() { flag_ = false; }
    bool& flag_;
  } const starting(starting_);
  while (!ready_.empty()) {
    const OperationRef next(ready_.front());
    ready_.pop_front();
    if (!next->complete()) start_(*next);
  }
}

void Scheduler::launched(Operation& operation) {
  if (!operation.collective() && !operation.lane->messages.empty()) operation.lane->messages.remove(operation);
  streams_.launched(operation);
  if (!operation.after_start.empty()) release_all(std::exchange(operation.after_start, {}));
  if (!operation.after_launches.empty()) release_all(std::exchange(operation.after_launches, {}));
}

void Scheduler::finished(Operation& operation) {
  LaneState& lane = *operation.lane;
  hazards_.remove(operation);
  streams_.finished(operation);
  if (!operation.collective() && !lane.messages.empty()) lane.messages.remove(operation);
  if (operation.collective()) {  // they complete nearly in order, so it is near the front
    const auto at = std::find(lane.collectives.begin(), lane.collectives.end(), &operation);
    if (at != lane.collectives.end()) lane.collectives.erase(at);
  }
  if (!operation.follows.empty()) {
    for (Operation* earlier : std::exchange(operation.follows, {})) earlier->release();
  }
  if (operation.followed) release_dependents(operation);
}

void Scheduler::release_dependents(Operation& operation) {
  for (const Dependents list : {&Operation::after_completion, &Operation::after_start, &Operation::after_launches})
    release_all(std::exchange(operation.*list, {}));
}

void Scheduler::look_for_late_launches() {
  if (streams_.launching().empty()) return;
  const auto now = std::chrono::steady_clock::now();
  for (Operation* earlier : std::vector<Operation*>(streams_.launching())) {
    if (!earlier->after_launches.empty() && now >= earlier->launch_limit)
      release_all(std::exchange(earlier->after_launches, {}));
  }
}

void Scheduler::withdraw(const std::vector<Operation*>& failing, const PendingList& pending) {
  bool any = false;
  for (Operation* operation : failing) {
    if (operation->launched && !operation->lane->in_streams) continue;  // its dependencies are complete
    any = true;
    for (auto* list : {&operation->after_completion, &operation->after_start}) {
      for (Operation* waiting : *list) waiting->orphaned = true;
    }
  }
  if (!any) return;
  // Rare, so it may check all pairs; the index dropped the operations that a failing writer covered.
  hazards_.clear();
  // One that has failed keeps its memory while its library may still write there.
  const auto uses_nothing = [](const Operation& operation) { return operation.error && !operation.transfer; };
  for (Operation& operation : pending) {
    if (uses_nothing(operation)) continue;
    for (Operation* earlier = operation.orphaned ? pending.front() : &operation; earlier != &operation;
         earlier = PendingList::next(*earlier)) {
      if (uses_nothing(*earlier)) continue;
      if (conflict(earlier->accesses, operation.accesses)) {
        behind_memory(*earlier, operation);
      } else if (earlier->lane->ordered_on_device() && operation.lane->ordered_on_device() && operation.collective()) {
        if (earlier->collective() && earlier->lane->in_streams) {
          behind_launch(*earlier, operation);
        } else if (!earlier->launched && (earlier->collective() || earlier->lane->in_streams)) {
          behind_all_launches(*earlier, operation);
        }
      }
    }
    operation.orphaned = false;
    hazards_.add(operation, [](Operation&) {});
  }
}

}  // namespace medley::core
