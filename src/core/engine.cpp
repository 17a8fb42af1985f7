// Issuing: choosing the lane, the inline path, and what an operation must wait for before it starts.
#include "core/engine.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/hazards.hpp"
#include "core/pause.hpp"

namespace medley::core {
namespace {

// How often a blocking call polls before it becomes an operation that others could wait for; a peer in the same call
// answers well within this. Without a core for each rank, polling only keeps the peer from running.
constexpr int inline_polls = 200;

std::string available(const CommState& comm) {
  std::string names;
  for (const auto& lane : comm.lanes) names += (names.empty() ? "" : ", ") + std::string(lane->backend->name());
  return names.empty() ? "none" : names;
}

void copy_parts(Operation& operation, int ranks) {
  Call& call = operation.call;
  const std::int64_t** lists[] = {&call.in_counts, &call.in_offsets, &call.out_counts, &call.out_offsets};
  const auto n = static_cast<std::size_t>(ranks);
  operation.parts.resize(4 * n);
  for (std::size_t i = 0; i < 4; ++i) {
    if (!*lists[i]) continue;
    std::copy_n(*lists[i], n, operation.parts.begin() + static_cast<std::ptrdiff_t>(i * n));
    *lists[i] = operation.parts.data() + i * n;
  }
}

bool same_stream_of_messages(const Call& a, const Call& b) {
  const bool any = a.root < 0 || b.root < 0;
  return a.op == b.op && a.tag == b.tag && (any || a.root == b.root);
}

}  // namespace

LaneState& Engine::choose_lane(CommState& comm, const Call& call, std::string_view backend) const {
  for (auto& lane : comm.lanes) {
    if (!backend.empty() && lane->backend->name() != backend) continue;
    if (backend.empty() && !lane->backend->has_memory(call.memory)) continue;
    if (lane->backend->has_memory(call.memory)) return *lane;
    throw Error(ErrorKind::unavailable,
                fmt::format("{} on comm {}: backend {} does not move {} memory", name(call.op), comm.name, backend,
                            name(call.memory)),
                {.op = call.op, .comm = comm.name, .backend = std::string(backend)});
  }
  if (backend.empty()) {
    throw Error(ErrorKind::unavailable, fmt::format("{} on comm {}: no backend of this comm ({}) moves {} memory",
                                                    name(call.op), comm.name, available(comm), name(call.memory)),
                {.op = call.op, .comm = comm.name});
  }
  throw Error(ErrorKind::unavailable,
              fmt::format("{} on comm {}: backend \"{}\" is not available here; this comm has {}", name(call.op),
                          comm.name, backend, available(comm)),
              {.op = call.op, .comm = comm.name, .backend = std::string(backend)});
}

void Engine::refuse_forked_child() const {
  if (fork_guard_.here()) return;
  throw Error(ErrorKind::invalid,
              "this process was forked from the one that made the context; make a new context here");
}

LaneState& Engine::admit(const Request& request) const {
  CommState& comm = *request.comm;
  if (comm.failure) {
    const bool collective = request.call.op != Op::send && request.call.op != Op::recv;
    throw with_context(*comm.failure, comm, request.call, (collective ? comm.collectives : comm.messages) + 1, "");
  }
  return choose_lane(comm, request.call, request.backend);
}

Operation* Engine::issue(Request request, int& source) {
  refuse_forked_child();
  Operation* operation = nullptr;
  {
    const std::lock_guard lock(mutex_);
    CommState& comm = *request.comm;
    LaneState& lane = admit(request);
    const bool collective = request.call.op != Op::send && request.call.op != Op::recv;
    ++(collective ? comm.collectives : comm.messages);
    bool done = false;
    if (!request.async && quiet()) {
      operation = try_inline(request, lane, source, done);
      if (done) return nullptr;
    } else {
      operation = enlist(request, lane);
      depend_on_earlier(*operation);
      if (operation->blockers == 0) start(*operation);
    }
    operation->retain();
  }
  if (request.async) return operation;
  try {
    wait(*operation, operation->deadline);
  } catch (...) {
    operation->release();
    throw;
  }
  source = operation->source;
  operation->release();
  return nullptr;
}

Operation* Engine::try_inline(Request& request, LaneState& lane, int& source, bool& done) {
  // Nothing is pending, so nothing can conflict and the lane is free: no bookkeeping is needed unless it takes long.
  CommState& comm = *request.comm;
  Transfer* transfer = nullptr;
  try {
    transfer = lane.lane->start(request.call);
    const int polls = lane.waiter && lane.waiter->spins() == 0 ? 1 : inline_polls;
    for (int i = 0; i < polls; ++i) {
      if (transfer->poll()) {
        source = transfer->source();
        transfer->release();
        if (lane.lane->undelivered()) {
          busy_lanes_.push_back(&lane);
          ++undelivered_lanes_;
        }
        done = true;
        return nullptr;
      }
      lane.lane->progress();
      pause();
    }
  } catch (const Error& error) {
    if (transfer) transfer->release();
    const bool collective = request.call.op != Op::send && request.call.op != Op::recv;
    const Error full = with_context(error, comm, request.call, collective ? comm.collectives : comm.messages,
                                    lane.backend->name());
    if (ends_comm(request.call, error)) fail_locked(comm, full);
    throw full;
  }
  Operation* operation = enlist(request, lane);
  operation->transfer = transfer;
  operation->state.store(Operation::State::active, std::memory_order_relaxed);
  if (lane.active++ == 0) busy_lanes_.push_back(&lane);
  if (operation->collective()) lane.last_collective = operation;
  return operation;
}

Operation* Engine::enlist(const Request& request, LaneState& lane) {
  auto* operation = new Operation;
  CommState& comm = *request.comm;
  operation->comm = request.comm;
  operation->lane = &lane;
  operation->call = request.call;
  copy_parts(*operation, comm.size);
  operation->sequence = operation->collective() ? comm.collectives : comm.messages;
  operation->deadline = std::chrono::steady_clock::now() + (request.deadline.count() > 0 ? request.deadline : comm.deadline);
  operation->accesses = accesses_of(operation->call, comm.size);
  pending_.push_back(operation);
  return operation;
}

void Engine::depend_on_earlier(Operation& operation) {
  LaneState& lane = *operation.lane;
  for (Operation* earlier : pending_) {
    if (earlier == &operation || earlier->complete() || !earlier->lane) continue;
    bool after_completion = conflict(earlier->accesses, operation.accesses);
    bool after_start = false;
    if (earlier->lane == &lane && earlier->collective() && operation.collective()) {
      if (earlier != lane.last_collective && !after_completion) continue;   // the chain of collectives covers it
      after_completion = after_completion || !lane.lane->concurrent_collectives();
      after_start = true;
    } else if (earlier->lane == &lane && !earlier->collective() && !operation.collective()) {
      after_start = same_stream_of_messages(earlier->call, operation.call);
    }
    const bool waits = earlier->state.load(std::memory_order_relaxed) == Operation::State::waiting;
    if (!after_completion && !(after_start && waits)) continue;
    (after_completion ? earlier->after_completion : earlier->after_start).push_back(&operation);
    operation.retain();   // its comm may fail and the caller drop it before the earlier one lets it go
    ++operation.blockers;
  }
  if (operation.collective()) lane.last_collective = &operation;
}

Operation* Engine::issue_group(std::vector<Request> requests) {
  refuse_forked_child();
  const std::lock_guard lock(mutex_);
  CommState& comm = *requests.front().comm;
  std::vector<LaneState*> lanes;
  for (const Request& request : requests) lanes.push_back(&admit(request));   // all or none
  auto* group = new Operation;
  group->comm = requests.front().comm;
  group->call = requests.front().call;
  group->members = static_cast<int>(requests.size());
  group->sequence = comm.messages + 1;
  group->references = 1 + group->members;   // the caller's, and one for each member
  for (std::size_t i = 0; i < requests.size(); ++i) {
    ++comm.messages;
    Operation* operation = enlist(requests[i], *lanes[i]);
    operation->group = group;
    group->deadline = operation->deadline;
    depend_on_earlier(*operation);
    if (operation->blockers == 0) start(*operation);
  }
  return group;
}

}  // namespace medley::core
