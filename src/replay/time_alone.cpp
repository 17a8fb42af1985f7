// Times the operations of a step one at a time: the parts from which a prediction composes it.
#include <time.h>

#include <algorithm>
#include <array>
#include <medley/scope.hpp>

#include "replay/pool.hpp"
#include "trace/trace.hpp"

namespace medley::replay {
namespace {

// A rank that takes no part checks this often whether it is over; polling, it would take a core from those that do.
constexpr timespec between_looks{0, 100'000};

}  // namespace

void Replayer::wait_aside() {
  Work all = world_.barrier({.async = true});
  while (!all.test()) nanosleep(&between_looks, nullptr);
}

/// The ranks of an operation synchronize right before it, the rest of the world before that.
void Replayer::line_up(const Action& action, bool all) {
  Comm& comm = comm_of(action);
  if (!all) world_.barrier();
  if (action.op != Op::send && action.op != Op::recv) {
    comm.barrier();
    return;
  }
  std::array<std::uint8_t, 2> bytes{};
  comm.sendrecv(ConstBuffer(&bytes[0], 1, DType::u8), peer_of(action), Buffer(&bytes[1], 1, DType::u8),
                peer_of(action));
}

std::vector<std::optional<Span>> Replayer::time_alone(const std::vector<Meeting>& order, const Router& route) {
  const Scope border(trace::step_scope);
  std::vector<std::optional<Span>> took(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto& who = order[i].who;
    const auto me = std::find(who.begin(), who.end(), schedule_.rank) - who.begin();
    const bool all = static_cast<int>(who.size()) == world_.size();
    if (me == static_cast<std::ptrdiff_t>(who.size())) {
      wait_aside();
      continue;
    }
    const Action& action = schedule_.actions[order[i].entries[static_cast<std::size_t>(me)]];
    line_up(action, all);
    Pending pending{action.token, {}, {}};
    const double begin = machine_clock_us();
    pending.work = issue(action, route, pending);
    if (action.token != 0) pending.work.wait();
    took[i] = Span{begin, machine_clock_us()};
  }
  return took;
}

}  // namespace medley::replay
