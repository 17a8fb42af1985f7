// Automatic fusion: async collectives of a comm are collected, and its ranks agree on how many of them start together.
//
// Every rank offers how many of its first collected operations could start now, that is, have no earlier operation to
// wait for. The smallest offer is what all ranks issue. So waits, time and memory may decide on a rank when it offers
// and how many, but never which operations meet (docs/proofs.md, "Fused collectives").
#include <algorithm>
#include <medley/sdk/current_error.hpp>
#include <utility>

#include "compress/spec.hpp"
#include "engine/engine.hpp"
#include "fuse/compose.hpp"

namespace medley::core {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t most_members = fuse::Collector::most_members;

}  // namespace

/// On host memory: operations in streams launch at issue, so that graphs can capture them. A named algorithm may be one
/// that the message's route lacks. What the call, a rule or the table compresses keeps its own values apart from
/// others'. All of this is equal on all ranks. Blocking calls are collected too: another rank may call the same
/// collective async.
bool Engine::collects(const CommState& comm, const Call& call, const Options& options) {
  return options.algorithm.empty() && !compress::is_compressed(call.algorithm) && call.memory == Memory::host &&
         fuse::fusable(call.op) && comm.fuses(call, options.backend);
}

/// Pending like every operation, so that hazards, deadlines and failures treat it like one, but held until it is agreed
/// on.
Operation* Engine::collect_behind(const std::shared_ptr<CommState>& comm, const Call& call, const Options& options,
                                  const Route& chosen) {
  AutoFuse& fusing = *comm->auto_fuse;
  const std::uint64_t begun = ticks();
  Operation* const operation = enlist(make_operation(comm, call, options, *chosen.lane, begun), options);
  operation->collected = true;
  if (options.backend != "auto") operation->named_backend = options.backend;
  if (fusing.due == Deadline::max()) fusing.due = steady_clock::now() + AutoFuse::longest_collection;
  queue(*operation, chosen, options, begun);
  if (comm->awaiting_lane_order.size() % 64 == 0) assign_lane_orders(*comm);  // enough for a message, perhaps
  return operation;
}

/// Offers this rank's share of the next message, if it is time to. True if it did.
bool Engine::seek_agreement(CommState& comm) {
  AutoFuse& fusing = *comm.auto_fuse;
  if (fusing.agreement || comm.failure) return false;
  std::size_t ready = 0;
  std::int64_t bytes = 0;
  const auto& waiting = comm.awaiting_lane_order;
  while (ready < waiting.size() && ready < most_members && bytes < fuse::Collector::most_bytes) {
    const Operation& next = *waiting[ready];
    if (!next.collected || next.blockers > 1) break;  // 1: the hold until it is agreed on
    bytes += fuse::larger_side(next.call, comm.rank, comm.size);
    ++ready;
  }
  if (ready == 0) return false;
  const bool full = bytes >= fuse::Collector::most_bytes || ready == most_members;
  const bool followed = ready < waiting.size() && !waiting[ready]->collected;  // by one that waits behind them
  if (!full && !followed && !fusing.asked && steady_clock::now() < fusing.due) return false;
  Call call;
  call.op = Op::all_reduce;
  call.dtype = DType::i64;
  call.reduce = ReduceOp::min;
  // This rank's offer, then the smallest of all
  auto number = std::make_shared<std::int64_t[]>(1, static_cast<std::int64_t>(ready));
  call.in = call.out = number.get();
  call.in_count = call.out_count = 1;
  const std::shared_ptr<CommState> shared = waiting.front()->comm;
  Operation* const agreement = enlist_internal(shared, call, *comm.routing.find(call, comm.size));
  agreement->lists = std::move(number);  // a library that cannot cancel gets it with the abandoned transfer
  agreement->deadline = waiting.front()->deadline;
  fusing.agreement = agreement;
  if (agreement->blockers == 0) start(*agreement);
  return true;
}

/// Pending and in lane order, but not counted, recorded or checked: the program did not issue it. Never compressed:
/// what a rule says about the size of the message is not meant for its offers, its bytes, or members that forbid it.
Operation* Engine::enlist_internal(const std::shared_ptr<CommState>& comm, const Call& call, const Route& route) {
  Call own = call;
  if (own.algorithm.empty() && !compress::is_compressed(route.algorithm)) own.algorithm = route.algorithm;
  OperationRef made = make_operation(comm, own, {}, *route.lane, ticks());
  Operation* const operation = enlist(std::move(made), {.async = true});
  operation->accesses.clear();
  operation->release();  // the caller's reference: the pending list's is enough
  scheduler_.add_ahead(*operation);
  return operation;
}

void Engine::take_agreement(Operation& agreement) {
  CommState& comm = *agreement.comm;
  AutoFuse& fusing = *comm.auto_fuse;
  fusing.agreement = nullptr;
  if (agreement.error || comm.failure) return;
  issue_agreed(comm, static_cast<std::size_t>(agreement.lists[0]));
  const auto& waiting = comm.awaiting_lane_order;
  const bool more = std::any_of(waiting.begin(), waiting.end(), [](const Operation* one) { return one->collected; });
  fusing.due = more ? steady_clock::now() : Deadline::max();  // the rest has waited long enough
  if (!more) fusing.asked = false;
}

/// The first `count` collected operations leave the queue, in the messages that fuse::compose makes of them on every
/// rank.
void Engine::issue_agreed(CommState& comm, std::size_t count) {
  auto& waiting = comm.awaiting_lane_order;
  const std::vector<Operation*> members(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(count));
  waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(count));
  std::vector<fuse::Member> calls;
  for (Operation* member : members) {
    member->collected = false;
    Call call = member->call;
    call.algorithm = {};      // the message takes that of its own route
    call.feedback = nullptr;  // none of them is compressed
    calls.emplace_back(call, Options{.backend = member->named_backend});
  }
  for (const fuse::Composed& one : fuse::compose(calls, comm.rank, comm.size, comm.fuse_limits)) {
    std::vector<Operation*> carried;
    for (const std::uint32_t i : one.members) carried.push_back(members[i]);
    if (comm.failure) {  // an earlier message failed: they end with the comm's abort
      for (Operation* member : carried) member->release();
    } else if (one.fusion) {
      const Route& chosen = route(comm, one.call, one.first->backend);
      Call packed = one.call;
      if (chosen.algorithm.empty()) take_fused_algorithm(packed, *chosen.lane, comm.size);
      Operation* const message = enlist_internal(carried.front()->comm, packed, chosen);
      message->fusion = one.fusion;
      carry(*message, carried);
    } else {
      scheduler_.take_lane_order(*carried.front());
    }
  }
}

/// The members complete with the message, which starts now or in lane order.
void Engine::carry(Operation& message, const std::vector<Operation*>& members) {
  message.sequence = members.front()->sequence;
  message.deadline = members.front()->deadline;
  for (Operation* member : members) {
    message.deadline = std::min(message.deadline, member->deadline);
    message.retain();
    member->batch.push_back(&message);
    message.tensors.push_back(member);  // with the reference of its hold
    note_start(member->record, ticks());
  }
  if (message.blockers == 0) start(message);
}

}  // namespace medley::core
