#include "reconcile/meetings.hpp"

#include <algorithm>
#include <cmath>

#include "base/v_collectives.hpp"

namespace medley::reconcile {
namespace {

Ready ready_of(const trace::Event& event, int rank) {
  return {rank, event.on_device ? event.started : event.issued, event.started};
}

}  // namespace

std::size_t Meetings::Hash::operator()(const Key& key) const noexcept {
  std::uint64_t h = 1469598103934665603ull;
  for (const std::uint64_t part : {std::uint64_t{std::get<0>(key)}, static_cast<std::uint64_t>(std::get<1>(key)),
                                   static_cast<std::uint64_t>(std::get<2>(key)), std::get<3>(key)})
    h = (h ^ part) * 1099511628211ull;
  return h ^ (h >> 29);
}

bool Meetings::comparable(const trace::Event& event) const {
  return trace_.timed && trace_.starts_exact && std::isfinite(trace_.clock_error) && !event.call_only &&
         event.issued >= 0 && event.started >= 0 && event.completed >= 0;
}

std::optional<Meetings::Key> Meetings::key_of(const trace::Event& event, int rank, std::uint64_t message) {
  if (is_collective(event.op)) {
    if (!event.matched) return std::nullopt;
    return Key{event.group, -1, -1, event.sequence};
  }
  if (message == 0 || event.peer < 0) return std::nullopt;
  const bool sends = event.op == Op::send;
  return Key{event.group, sends ? rank : event.peer, sends ? event.peer : rank, message};
}

void Meetings::add(const trace::Event& event, int rank, std::uint64_t message) {
  if (!comparable(event)) return;
  const auto key = key_of(event, rank, message);
  if (!key) return;
  Meeting& at = meetings_[*key];
  const Op op = is_collective(event.op) ? core::equal_counts_form(event.op) : Op::send;
  if (at.ranks++ == 0) {
    at.op = op;
    at.bytes = event.bytes;
  }
  // The sizes of v-collectives may differ from rank to rank.
  at.differs = at.differs || at.op != op || (op == Op::send && at.bytes != event.bytes);
  const Ready ready = ready_of(event, rank);
  const bool first = is_collective(event.op) ? rank == event.peer : event.op == Op::send;
  if (first) at.root = ready;
  if (is_collective(event.op) ? at.last.rank < 0 || ready.started > at.last.started : !first) at.last = ready;
}

std::optional<Ready> Meetings::last_ready(const trace::Event& event, int rank, std::uint64_t message) const {
  if (!comparable(event)) return std::nullopt;
  const auto key = key_of(event, rank, message);
  const auto found = key ? meetings_.find(*key) : meetings_.end();
  if (found == meetings_.end() || found->second.differs) return std::nullopt;
  const Meeting& at = found->second;
  const int size = is_collective(event.op) ? trace_.groups[event.group].size : 2;
  if (at.ranks != size) return std::nullopt;
  const Ready own = ready_of(event, rank);
  Ready other = at.last;
  if (rooted(event.op)) {
    if (event.peer < 0 || at.root.rank < 0) return std::nullopt;
    const bool from_root = event.op == Op::broadcast || core::equal_counts_form(event.op) == Op::scatter;
    other = from_root ? at.root : rank == event.peer ? at.last : own;
  } else if (!is_collective(event.op)) {
    other = event.op == Op::send ? at.last : at.root;
    // A small message leaves before its receiver is there.
    if (event.op == Op::send && other.started >= event.completed) other = own;
  }
  return other.started > own.started + trace_.clock_error ? other : own;
}

}  // namespace medley::reconcile
