// Fused collectives: lists of tensors that are issued together, and the scopes that collect them (docs/proofs.md,
// "Fused collectives"). Which tensors share a message is decided by fuse::compose.
#include <fmt/format.h>

#include <algorithm>
#include <medley/sdk/current_error.hpp>
#include <utility>

#include "algorithms/registry.hpp"
#include "compress/spec.hpp"
#include "engine/engine.hpp"
#include "fuse/compose.hpp"

namespace medley::core {
namespace {

[[noreturn]] void refuse(const CommState& comm, const Call& call, const std::string& why) {
  throw Error(ErrorKind::invalid, fmt::format("{} on comm {}: {}", name(call.op), comm.name, why),
              {.op = call.op, .comm = comm.name});
}

template <class Calls, class CallOf>
bool any_on_device(const Calls& calls, CallOf call_of) {
  return std::any_of(calls.begin(), calls.end(), [&](const auto& one) { return call_of(one).memory == Memory::cuda; });
}

bool is_series(const fuse::Composed& one) { return one.fusion && one.fusion->is_series(); }

}  // namespace

/// The tensors of a series take the routes that they would take alone, so it becomes one series for each route. Where
/// ranks agree on routes while the job runs, or the route compresses, each tensor is an operation by itself. All of
/// this is equal on all ranks.
std::vector<fuse::Composed> Engine::with_one_route_each(CommState& comm, std::vector<fuse::Composed> composed) const {
  std::vector<fuse::Composed> made;
  for (fuse::Composed& one : composed) {
    if (!is_series(one)) {
      made.push_back(std::move(one));
      continue;
    }
    const std::vector<FusedTensor>& tensors = one.fusion->tensors();
    Call alone = one.call;
    std::vector<std::pair<const Route*, std::vector<std::uint32_t>>> by_route;
    for (std::uint32_t i = 0; i < tensors.size(); ++i) {
      fuse::Fusion::set_tensor(alone, tensors[i], comm.size);
      const Route* const own = &route(comm, alone, one.first->backend);
      const bool apart = comm.agrees_on_routes || compress::is_compressed(own->algorithm);
      if (by_route.empty() || apart || by_route.back().first != own) {
        const auto same = std::find_if(by_route.begin(), by_route.end(),
                                       [&](const auto& group) { return !apart && group.first == own; });
        if (same != by_route.end()) {
          same->second.push_back(i);
          continue;
        }
        by_route.push_back({own, {}});
      }
      by_route.back().second.push_back(i);
    }
    if (by_route.size() == 1) {
      made.push_back(std::move(one));
      continue;
    }
    for (const auto& [own, of_route] : by_route)
      made.push_back(fuse::part_of_series(one, of_route, comm.rank, comm.size));
  }
  return made;
}

/// All its tensors have one route.
const Route& Engine::admit_series(CommState& comm, fuse::Composed& series) const {
  Call alone = fuse::Fusion::call_of(series.fusion->tensors().front(), series.call, comm.size);
  const Route& chosen = admit(comm, alone, series.first->backend);
  series.call.algorithm = alone.algorithm;
  return chosen;
}

/// A packed message is Medley's own, so its algorithm is Medley's where the library's reductions are slower: Open MPI's
/// take up to twice as long.
void Engine::take_fused_algorithm(Call& call, const LaneState& lane, int ranks) {
  if (call.algorithm.empty() && lane.slow_reductions && reduces(call.op) && call.memory == Memory::host) {
    call.algorithm = algorithms::choose(call, ranks).name;
  }
}

/// Under the lock: issues all or none. `carried` links an operation to its Works; it is called before the operation may
/// start, and owns the reference that it gets.
void Engine::issue_composed(const std::shared_ptr<CommState>& comm, std::vector<fuse::Composed>& composed,
                            const Options& options, const Carried& carried) {
  std::vector<const Route*> routes;
  routes.reserve(composed.size());
  if (std::any_of(composed.begin(), composed.end(), is_series))
    composed = with_one_route_each(*comm, std::move(composed));
  for (fuse::Composed& one : composed) {
    if (one.fusion && !collecting_.empty()) [[unlikely]] {  // the message itself has no memory to compare
      for (const FusedTensor& tensor : one.fusion->tensors())
        refuse_collected(*comm, fuse::Fusion::call_of(tensor, one.call, comm->size));
    }
    routes.push_back(is_series(one) ? &admit_series(*comm, one) : &admit(*comm, one.call, one.first->backend));
    const LaneState& lane = *routes.back()->lane;
    if (one.fusion && !is_series(one)) take_fused_algorithm(one.call, lane, comm->size);
    if (one.call.memory == Memory::cuda) admit_on_device(*comm, one.call, lane);
    if (one.fusion && !is_series(one) && lane.lane->takes_lists()) {
      one.call.list = &one.fusion->list();
      // One launch of many tensors, which no kernel encodes
      if (lane.in_streams && compress::is_compressed(one.call.algorithm)) one.call.algorithm = {};
    }
  }
  const std::uint64_t begun = ticks();
  Options own = options;
  for (std::size_t i = 0; i < composed.size(); ++i) {
    own.deadline = composed[i].deadline;
    comm->count(true);
    OpenRoute open;
    OnlineTicket ticket;
    if (comm->agrees_on_routes) [[unlikely]] {
      try {
        routes[i] = &settle_route(*comm, composed[i].call, composed[i].first->backend, *routes[i], open, ticket);
      } catch (const Error&) {
        // The comm has failed: this operation ends with its error, like those before it.
      }
    }
    try {
      OperationRef made = make_operation(comm, composed[i].call, own, *routes[i]->lane, begun);
      made->fusion = composed[i].fusion;
      made->open_route = std::move(open);
      made->online = ticket;
      Operation* const operation = enlist(std::move(made), own);
      carried(*operation, composed[i]);
      queue(*operation, *routes[i], own, begun);
    } catch (...) {  // the peers wait for a collective that this rank cannot issue
      fail_locked(*comm, with_context(current_error(), *comm, composed[i].call, comm->collectives, ""));
      throw;
    }
  }
}

Operation* Engine::issue_list(const std::shared_ptr<CommState>& comm, std::vector<fuse::Composed>& composed,
                              const Options& options) {
  refuse_forked_child();
  handle_events();
  if (any_on_device(composed, [](const fuse::Composed& one) -> const Call& { return one.call; })) use_device(*comm);
  OperationRef group(new Operation);
  group->comm = comm;
  group->call = composed.front().first->call;
  group->call.algorithm = {};
  group->deadline = Deadline::max();
  const Hold hold(*this);
  group->sequence = comm->collectives + 1;
  const auto link = [&](Operation& operation, const fuse::Composed&) {
    if (group->batch.empty()) {  // all were admitted
      group->members = static_cast<int>(composed.size());
      group->references = 1 + group->members;  // the caller's, and one for each member
    }
    operation.group = group.get();
    group->batch.push_back(&operation);
    group->deadline = std::min(group->deadline, operation.deadline);
  };
  try {
    issue_composed(comm, composed, options, link);
  } catch (...) {
    const std::size_t missing = group->batch.empty() ? 0 : composed.size() - group->batch.size();
    if (!end_early(*group, missing, current_error())) throw;
  }
  return group.release();
}

void Engine::open_fuse(const std::shared_ptr<CommState>& comm) {
  refuse_forked_child();
  const Hold hold(*this);
  if (comm->collector) {
    ++comm->collector->depth;
    return;
  }
  if (comm->failure) throw *comm->failure;
  comm->collector = std::make_unique<fuse::Collector>();
  collecting_.push_back(comm.get());
}

void Engine::close_fuse(const std::shared_ptr<CommState>& comm) {
  refuse_forked_child();
  std::optional<Error> failed;
  try {
    flush_fused(comm);
  } catch (const Error& error) {
    failed = error;
  }
  {
    const Hold hold(*this);
    if (--comm->collector->depth == 0) {
      std::erase(collecting_, comm.get());
      comm->collector.reset();
    }
  }
  if (failed) throw *failed;
}

Operation* Engine::collect(const std::shared_ptr<CommState>& comm, const Call& call, const Options& options) {
  refuse_forked_child();
  handle_events();
  bool full = false;
  OperationRef handle(new Operation);
  {
    const Hold hold(*this);
    fuse::Collector& collector = *comm->collector;
    // Reports what is wrong with it at the call: at the flush, the Works of all collected operations would end with
    // that error.
    Call alone = call;
    static_cast<void>(admit(*comm, alone, options.backend));
    if (call.memory == Memory::cuda && collector.stream.value_or(call.stream) != call.stream) {
      refuse(*comm, call,
             "operations on CUDA memory in one fuse scope use one stream; flush the scope before using another");
    }
    if (call.memory == Memory::cuda) collector.stream = call.stream;
    handle->comm = comm;
    handle->call = call;
    handle->call.algorithm = {};
    handle->of_tensor = true;
    handle->deadline = Deadline::max();
    collector.footprint.add(call);
    collector.members.emplace_back(call, options);
    handle->retain();
    collector.handles.push_back(handle.get());
    collector.bytes += fuse::larger_side(call, comm->rank, comm->size);
    full = collector.full();
  }
  if (full) flush_fused(comm);
  return handle.release();
}

void Engine::flush_fused(const std::shared_ptr<CommState>& comm) {
  refuse_forked_child();
  handle_events();
  fuse::Collector& collector = *comm->collector;
  if (any_on_device(collector.members, [](const fuse::Member& one) -> const Call& { return one.call; }))
    use_device(*comm);
  const Hold hold(*this);
  flush_locked(comm);
}

/// The Works of the members complete with the operations that carry them. If the comm has failed, they complete with
/// its error.
void Engine::flush_locked(const std::shared_ptr<CommState>& comm) {
  fuse::Collector& collector = *comm->collector;
  if (collector.members.empty()) return;
  const std::vector<fuse::Member> members = std::exchange(collector.members, {});
  const std::vector<Operation*> handles = std::exchange(collector.handles, {});
  collector.footprint.clear();
  collector.bytes = 0;
  collector.stream.reset();
  try {
    std::vector<fuse::Composed> composed = fuse::compose(members, comm->rank, comm->size, comm->fuse_limits);
    issue_composed(comm, composed, {.async = true}, [&](Operation& operation, const fuse::Composed& made) {
      for (const std::uint32_t i : made.members) {
        Operation& handle = *handles[i];
        handle.deadline = operation.deadline;
        handle.sequence = operation.sequence;
        operation.retain();
        handle.batch.push_back(&operation);
        operation.tensors.push_back(&handle);
      }
      operation.release();  // the handles have it now
    });
  } catch (...) {
    const Error error = current_error();
    for (std::size_t i = 0; i < handles.size(); ++i) {
      Operation& handle = *handles[i];
      if (!handle.batch.empty()) continue;  // issued: it ends with the operation that carries it
      handle.error = with_context(error, *comm, handle.call, comm->collectives, "");
      finish(handle);
      handle.release();
    }
    throw error;
  }
}

/// Completes the operations of the tensors that a message carried, each with the message's error. Those that automatic
/// fusion collected are pending operations themselves, which the failure of their comm may have completed already.
void Engine::finish_tensors(Operation& operation) {
  for (Operation* tensor : std::exchange(operation.tensors, {})) {
    const OperationRef held(tensor);
    if (tensor->complete()) continue;
    tensor->error = operation.error;
    if (tensor->of_tensor) {
      finish(*tensor);
    } else {
      settle(*tensor);
    }
  }
}

/// An operation that touches collected tensors would have to wait for a flush, which only the program can decide: an
/// error is better than a wait that never ends, or than results in another order.
void Engine::refuse_collected(const CommState& comm, const Call& call) const {
  for (const CommState* collecting : collecting_) {
    if (!collecting->collector->footprint.conflicts(call)) continue;
    refuse(
        comm, call,
        fmt::format("its memory overlaps a tensor that the open fuse scope of comm {} has collected; flush or end the "
                    "scope first",
                    collecting->name));
  }
}

/// Waiting for an operation that was collected and not issued would never end.
void Engine::refuse_unissued(Operation& operation) {
  const std::lock_guard lock(mutex_);
  if (operation.complete() || !operation.batch.empty()) return;
  refuse(*operation.comm, operation.call,
         "it is collected in an open fuse scope and not issued yet; flush or end the scope before waiting for it");
}

}  // namespace medley::core
