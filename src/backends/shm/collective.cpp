#include "backends/shm/collective.hpp"

#include <algorithm>
#include <cstring>

#include "backends/shm/host_peers.hpp"

namespace medley::shm {

Collective::Collective(Exchanger& exchanger, const HostPeers& host_peers)
    : exchanger_(exchanger),
      direct_reads_(host_peers.direct_reads()),
      crossovers_({.ranks = exchanger.ranks(),
                   .slot_bytes = exchanger.slot_bytes(),
                   .direct_reads = host_peers.direct_reads(),
                   .may_stream = host_peers.may_stream(),
                   .oversubscribed = host_peers.oversubscribed()}) {}

Transfer* Collective::start(const Call& call) {
  running_ = true;
  begun_ = false;
  two_ = false;
  algorithm_ = call.algorithm.empty() ? Algorithm{} : Algorithm::named(call.algorithm);
  first_.reset(call);
  plan(call);
  first_.handed = handed_;
  if (first_.mode == Mode::in_line) return poll() == Poll::complete ? nullptr : this;
  task_ = two_ ? run_both() : exchanger_.run(first_);
  return this;
}

Poll Collective::poll() {
  if (!running_) return Poll::complete;
  if (first_.mode != Mode::in_line) {
    if (const Poll seen = task_.poll(); seen != Poll::complete) return seen;
  } else {
    if (!begun_) {
      if (!exchanger_.can_begin()) return Poll::waiting;
      exchanger_.arrive_in_line(first_);
      begun_ = true;
    }
    if (!exchanger_.take_in_line(first_)) return Poll::waiting;
  }
  running_ = false;
  return Poll::complete;
}

Task Collective::run_both() {
  co_await exchanger_.run(first_);
  co_await exchanger_.run(second_);
}

void Collective::release() noexcept { stop(); }

void Collective::stop() noexcept {
  running_ = false;
  if (task_) task_ = Task{};
}

Mode Collective::mode(std::size_t bytes, bool small, bool segment, bool agreed) {
  handed_ = bytes;
  if (algorithm_.path == Algorithm::Path::direct || (algorithm_.path == Algorithm::Path::mixed && direct_reads_))
    return Mode::direct;
  if (agreed && bytes <= brief_bytes) return Mode::in_line;
  segment = segment || !direct_reads_ || algorithm_.path == Algorithm::Path::segment;
  if ((segment || small) && bytes <= exchanger_.slot_bytes()) return Mode::staged;
  return segment && exchanger_.ranks() > 1 ? Mode::streamed : Mode::direct;  // a single rank has nobody to read
}

Mode Collective::second_mode(std::size_t bytes, bool segment) const {
  // The parts are nearly equal. A part that fits into a slot can be laid out before any peer arrives.
  return segment ? through_segment(bytes / static_cast<std::size_t>(exchanger_.ranks()) + 64) : Mode::direct;
}

void Collective::plan(const Call& call) {
  switch (call.op) {
    case Op::barrier: handed_ = 0; return;
    case Op::all_reduce: return plan_all_reduce(call, bytes_of(call.out_count, call.dtype));
    case Op::reduce: return plan_reduce(call, bytes_of(call.in_count, call.dtype));
    case Op::reduce_scatter:
    case Op::reduce_scatterv: return plan_reduce_scatter(call);
    case Op::broadcast: return plan_broadcast(call);
    case Op::gather:
    case Op::gatherv: return plan_gather(call);
    case Op::scatter:
    case Op::scatterv: return plan_scatter(call);
    default: return plan_copy_to_all(call);
  }
}

void Collective::combine_into(Exchange& exchange, const Call& call, void* into, const void* own,
                              std::size_t bytes) const {
  exchange.combine = reducer(call.dtype, call.reduce);
  exchange.into = static_cast<std::byte*>(into);
  exchange.own = static_cast<const std::byte*>(own);
  exchange.into_bytes = bytes;
  exchange.divisor = call.reduce == ReduceOp::avg ? exchanger_.ranks() : 1;
}

void Collective::split_evenly(std::int64_t count, std::size_t element) {
  // Parts start on cache lines, so that no two ranks write one.
  const auto ranks = static_cast<std::int64_t>(exchanger_.ranks());
  const auto line = static_cast<std::int64_t>(64 / element);
  const std::int64_t part = (((count + ranks - 1) / ranks) + line - 1) / line * line;
  counts_.resize(static_cast<std::size_t>(ranks));
  offsets_.resize(static_cast<std::size_t>(ranks));
  for (std::int64_t r = 0, at = 0; r < ranks; ++r) {
    offsets_[static_cast<std::size_t>(r)] = at;
    counts_[static_cast<std::size_t>(r)] = std::min(part, count - at);
    at += counts_[static_cast<std::size_t>(r)];
  }
}

void Collective::plan_all_reduce(const Call& call, std::size_t bytes) {
  first_.identity.count = call.out_count;
  if (in_one_shot(bytes, crossovers_.one_shot)) {
    first_.mode = reducing_mode(bytes, bytes, true);
    first_.give.set_common(safe_source(call, bytes), bytes);
    combine_into(first_, call, call.out, call.in, bytes);
    return;
  }
  // Two shots: each rank reduces its own part, then all read the parts of the others.
  const auto me = static_cast<std::size_t>(exchanger_.rank());
  split_evenly(call.out_count, first_.element);
  first_.give.set_listed(call.in, counts_.data(), offsets_.data(), first_.element);
  first_.mode = reducing_mode(bytes, bytes / static_cast<std::size_t>(exchanger_.ranks()), false);
  first_.past_cache = bytes > crossovers_.past_cache;
  auto* mine = static_cast<std::byte*>(call.out) + bytes_of(offsets_[me], call.dtype);
  const std::size_t part = bytes_of(counts_[me], call.dtype);
  combine_into(first_, call, mine, static_cast<const std::byte*>(call.in) + (mine - static_cast<std::byte*>(call.out)),
               part);
  second_.reset(call);
  second_.identity.count = first_.identity.count;
  second_.mode = second_mode(bytes, first_.mode != Mode::direct);
  second_.give.set_common(mine, part);
  second_.take.set_listed(call.out, counts_.data(), offsets_.data(), first_.element);
  second_.past_cache = bytes > crossovers_.past_cache;
  two_ = true;
}

void Collective::plan_reduce(const Call& call, std::size_t bytes) {
  const bool root = exchanger_.rank() == call.root;
  first_.identity.count = call.in_count;
  if (in_one_shot(bytes, crossovers_.one_shot)) {
    first_.give.set_only(call.in, bytes, call.root);
    first_.mode = reducing_mode(bytes, bytes, true);
    first_.waits_for_all = root;
    if (root) combine_into(first_, call, call.out, call.in, bytes);
    return;
  }
  const auto me = static_cast<std::size_t>(exchanger_.rank());
  split_evenly(call.in_count, first_.element);
  const std::size_t offset = bytes_of(offsets_[me], call.dtype), part = bytes_of(counts_[me], call.dtype);
  if (!root && scratch_.size() < part) scratch_.resize(part);
  std::byte* mine = root ? static_cast<std::byte*>(call.out) + offset : scratch_.data();
  first_.give.set_listed(call.in, counts_.data(), offsets_.data(), first_.element);
  first_.mode = reducing_mode(bytes, bytes / static_cast<std::size_t>(exchanger_.ranks()), false);
  first_.all_meet = true;  // each reduces a part
  combine_into(first_, call, mine, static_cast<const std::byte*>(call.in) + offset, part);
  second_.reset(call);
  second_.identity.count = first_.identity.count;
  second_.mode = second_mode(bytes, first_.mode != Mode::direct);
  second_.give.set_only(mine, part, call.root);
  second_.waits_for_all = root;
  if (root) second_.take.set_listed(call.out, counts_.data(), offsets_.data(), first_.element);
  two_ = true;
}

void Collective::plan_reduce_scatter(const Call& call) {
  const auto me = static_cast<std::size_t>(exchanger_.rank());
  const std::size_t part = bytes_of(call.out_count, call.dtype), all = bytes_of(call.in_count, call.dtype);
  if (call.op == Op::reduce_scatter) {
    first_.identity.count = call.out_count;
    first_.give.set_uniform(call.in, part);
    first_.part_at = me * part;
    first_.mode = reducing_mode(all, part, true);
    combine_into(first_, call, call.out, static_cast<const std::byte*>(call.in) + me * part, part);
  } else {
    first_.give.set_listed(call.in, call.in_counts, call.in_offsets, first_.element);
    // Every rank knows all counts, so all choose alike
    first_.mode = reducing_mode(all, all / static_cast<std::size_t>(exchanger_.ranks()), false);
    combine_into(first_, call, call.out,
                 static_cast<const std::byte*>(call.in) + bytes_of(call.in_offsets[me], call.dtype), part);
  }
  first_.past_cache = part > crossovers_.past_cache;
}

}  // namespace medley::shm
