#include "replay/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <medley/error.hpp>
#include <medley/scope.hpp>
#include <set>

#include "replay/compute_time.hpp"
#include "replay/pool.hpp"
#include "trace/trace.hpp"

namespace medley::replay {
namespace {

/// Nearly equal parts of `count`, the first ones larger.
std::vector<std::int64_t> even_parts(std::int64_t count, int parts) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(parts), count / parts);
  for (int i = 0; i < static_cast<int>(count % parts); ++i) ++out[static_cast<std::size_t>(i)];
  return out;
}

}  // namespace

Replayer::Replayer(Context& context, const WorldSchedule& schedule, const ReplayOptions& options)
    : world_(context.world()),
      schedule_(schedule.of(context.rank(), context.size())),
      options_(options),
      pool_(std::make_unique<Pool>()) {
  // Every rank splits for every name, in one order, whether it is a member or not.
  std::set<std::string> names;
  for (const RankSchedule& rank : schedule.ranks) {
    for (const auto& [name, ranks] : rank.groups) names.insert(name);
  }
  for (const std::string& name : names) {
    const auto group = schedule_.groups.find(name);
    const int me = context.rank();
    const bool member = group != schedule_.groups.end() &&
                        std::find(group->second.begin(), group->second.end(), me) != group->second.end();
    Comm made = world_.split(member ? group->second.front() : -1, me);
    if (made) comms_.emplace(name, std::move(made));
  }
  for (const Action& action : schedule_.actions) {
    if (action.kind == Kind::comm && !comms_.contains(action.group)) {
      throw Error(ErrorKind::invalid,
                  fmt::format("rank {} sends in group {}, which it is not a member of", schedule_.rank, action.group));
    }
  }
}

Replayer::~Replayer() = default;

Comm& Replayer::comm_of(const Action& action) { return comms_.at(action.group); }

int Replayer::peer_of(const Action& action) const {
  const auto& members = schedule_.groups.at(action.group);
  return static_cast<int>(std::find(members.begin(), members.end(), action.peer) - members.begin());
}

Work Replayer::issue(const Action& a, const Router& route, Pending& pending) {
  Comm& comm = comm_of(a);
  const int n = comm.size();
  const auto size = static_cast<std::int64_t>(size_of(a.dtype));
  const std::int64_t count = scaled_bytes(a.bytes, a.dtype, options_.scale) / size;
  const ReduceOp reduce = reducible(a.dtype, a.reduce) ? a.reduce : ReduceOp::max;
  const Via via = route(a);
  const Options options{.backend = via.backend, .async = a.token != 0, .algorithm = via.algorithm};
  const auto buffer = [&](std::int64_t elements) {
    pending.memory.push_back(pool_->take(static_cast<std::size_t>(std::max<std::int64_t>(1, elements * size))));
    return Buffer(pending.memory.back()->data(), elements, a.dtype);
  };
  const bool even = count % n == 0;
  const std::vector<std::int64_t> parts = even ? std::vector<std::int64_t>{} : even_parts(count, n);
  const std::int64_t mine = even ? count / n : parts[static_cast<std::size_t>(comm.rank())];
  switch (a.op) {
    case Op::send: return comm.send(buffer(count), peer_of(a), options);
    case Op::recv: return comm.recv(buffer(count), peer_of(a), options);
    case Op::broadcast: return comm.broadcast(buffer(count), 0, options);
    case Op::reduce: return comm.reduce(buffer(count), reduce, 0, options);
    case Op::all_reduce: return comm.all_reduce(buffer(count), reduce, options);
    case Op::barrier: return comm.barrier(options);
    case Op::all_gather:
    case Op::all_gatherv:
      if (even) return comm.all_gather(buffer(mine), buffer(count), options);
      return comm.all_gatherv(buffer(mine), buffer(count), {.counts = parts}, options);
    case Op::reduce_scatter:
    case Op::reduce_scatterv:
      if (even) return comm.reduce_scatter(buffer(count), buffer(mine), reduce, options);
      return comm.reduce_scatterv(buffer(count), {.counts = parts}, buffer(mine), reduce, options);
    case Op::all_to_all:
    case Op::all_to_allv: {
      if (even) return comm.all_to_all(buffer(count), buffer(count), options);
      const std::vector<std::int64_t> taken(static_cast<std::size_t>(n), mine);
      return comm.all_to_allv(buffer(count), {.counts = parts}, buffer(mine * n), {.counts = taken}, options);
    }
    case Op::gather:
    case Op::gatherv:
      if (even) return comm.gather(buffer(mine), comm.rank() == 0 ? buffer(count) : Buffer{}, 0, options);
      return comm.gatherv(buffer(mine), comm.rank() == 0 ? buffer(count) : Buffer{}, {.counts = parts}, 0, options);
    case Op::scatter:
    case Op::scatterv:
      if (even) return comm.scatter(comm.rank() == 0 ? buffer(count) : Buffer{}, buffer(mine), 0, options);
      return comm.scatterv(comm.rank() == 0 ? buffer(count) : Buffer{}, {.counts = parts}, buffer(mine), 0, options);
  }
  return {};
}

/// Messages that start together. Returns the index after them.
std::size_t Replayer::issue_batch(std::size_t first, const Router& route) {
  const auto& actions = schedule_.actions;
  const std::size_t end = batch_end(actions, first);
  // Each is issued at once; blocking ones are awaited when all are in flight.
  std::vector<Pending> blocking;
  for (std::size_t i = first; i < end; ++i) {
    Action action = actions[i];
    Pending pending{action.token, {}, {}};
    action.token = action.token != 0 ? action.token : 1;
    const Scope scope(action.scope);
    pending.work = issue(action, route, pending);
    (pending.token != 0 ? pending_ : blocking).push_back(std::move(pending));
  }
  for (Pending& pending : blocking) pending.work.wait();
  return end;
}

void Replayer::wait_for(int token) {
  for (Pending& pending : pending_) {
    if (pending.token == token) pending.work.wait();
  }
  std::erase_if(pending_, [&](const Pending& pending) { return pending.token == token; });
}

double machine_clock_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Span Replayer::step(const Router& route) {
  {
    const Scope border(trace::step_scope);
    world_.barrier();
  }
  const double begin = machine_clock_us();
  run(route);
  return {begin, machine_clock_us()};
}

void Replayer::run(const Router& route) {
  const auto& actions = schedule_.actions;
  double computing = 0;  // seconds, adjacent actions together: one long sleep is more exact than many short ones
  for (std::size_t i = 0; i < actions.size();) {
    const Action& action = actions[i];
    if (action.kind == Kind::compute) {
      computing += compute_seconds(action, options_);
      ++i;
      continue;
    }
    if (const double seconds = std::exchange(computing, 0); seconds > 0) pass_time(seconds);
    if (action.kind == Kind::comm && action.batch != 0) {
      i = issue_batch(i, route);
      continue;
    }
    ++i;
    if (action.kind == Kind::wait) wait_for(action.token);
    if (action.kind != Kind::comm) continue;
    Pending pending{action.token, {}, {}};
    const Scope scope(action.scope);
    pending.work = issue(action, route, pending);
    if (action.token != 0) pending_.push_back(std::move(pending));
  }
  if (computing > 0) pass_time(computing);
  for (Pending& pending : pending_) pending.work.wait();
  pending_.clear();
}

}  // namespace medley::replay
