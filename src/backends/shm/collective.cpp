#include "backends/shm/collective.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace medley::shm {
namespace {

std::size_t last_level_cache() {
  const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : std::size_t{32} << 20;
}

std::size_t bytes_of(std::int64_t count, DType dtype) { return static_cast<std::size_t>(count) * size_of(dtype); }

}  // namespace

// Measured on 2 ranks, each against its peers in alternating runs (docs/performance.md):
// - 16 KiB all_reduce: one shot and two shots tie at 2.7 µs; more ranks read more in one shot, so the limit shrinks.
// - 16 KiB handed over: staged 2.7 µs, direct 4.8; 64 KiB: 10.6 and 11.4 on cores that share a cache, 35 and 18 on
//   cores that do not.
// - Writing around the cache costs 30 % at 4 MiB and saves 8 % at 16 MiB and 13 % at 64 MiB, with 32 MiB of cache.
// - all_reduce of 8 ranks on 16 cores: 256 KiB staged 84 µs, direct 142; 1 MiB streamed 467, direct 519; 4 MiB streamed
//   1884, direct 1215: eight readers at once get in each other's way in the kernel until the copies are long.
Collective::Collective(Exchanger& exchanger, bool direct_reads, bool oversubscribed)
    : exchanger_(exchanger), direct_reads_(direct_reads),
      crossovers_{.one_shot = std::max<std::size_t>(1u << 10, (32u << 10) / static_cast<std::size_t>(exchanger.ranks())),
                  .staged = direct_reads ? 16u << 10 : exchanger.slot_bytes(),
                  .segment = exchanger.ranks() >= 4 && !oversubscribed ? 1u << 20 : 0,
                  .past_cache = last_level_cache() / 4} {}

Transfer* Collective::start(const Call& call) {
  running_ = true;
  begun_ = false;
  two_ = false;
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

Mode Collective::mode(std::size_t bytes, std::size_t part, bool agreed, bool cache_local) {
  handed_ = bytes;
  if (agreed && bytes <= brief_bytes) return Mode::in_line;
  const bool segment = !direct_reads_ || cache_local;
  if ((segment || part <= crossovers_.staged) && bytes <= exchanger_.slot_bytes()) return Mode::staged;
  return segment && exchanger_.ranks() > 1 ? Mode::streamed : Mode::direct;   // alone, there is nobody to read
}

Mode Collective::reducing_mode(std::size_t bytes, std::size_t part, bool agreed) {
  if (bytes > crossovers_.segment || (agreed && bytes <= brief_bytes)) return mode(bytes, part, agreed, exchanger_.all_near());
  return bytes <= exchanger_.slot_bytes() ? Mode::staged : Mode::streamed;
}

void Collective::plan(const Call& call) {
  switch (call.op) {
    case Op::barrier: handed_ = 0; return;
    case Op::all_reduce: return plan_all_reduce(call, bytes_of(call.out_count, call.dtype));
    case Op::reduce: return plan_reduce(call, bytes_of(call.in_count, call.dtype));
    case Op::reduce_scatter:
    case Op::reduce_scatterv: return plan_reduce_scatter(call);
    case Op::broadcast:
    case Op::gather:
    case Op::scatter:
    case Op::gatherv:
    case Op::scatterv: return plan_rooted_copy(call);
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
  if (bytes <= crossovers_.one_shot || exchanger_.ranks() == 1) {
    first_.give.set_common(call.in, bytes);
    first_.mode = mode(bytes, bytes, true, exchanger_.all_near());
    combine_into(first_, call, call.out, call.in, bytes);
    return;
  }
  // Two shots: each rank reduces its own part, then everybody takes the parts of the others.
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
  second_.mode = first_.mode;
  second_.give.set_common(mine, part);
  second_.take.set_listed(call.out, counts_.data(), offsets_.data(), first_.element);
  second_.past_cache = bytes > crossovers_.past_cache;
  two_ = true;
}

void Collective::plan_reduce(const Call& call, std::size_t bytes) {
  const bool root = exchanger_.rank() == call.root;
  first_.identity.count = call.in_count;
  if (bytes <= crossovers_.one_shot || exchanger_.ranks() == 1) {
    first_.give.set_only(call.in, bytes, call.root);
    first_.mode = mode(bytes, bytes, true, exchanger_.all_near());
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
  combine_into(first_, call, mine, static_cast<const std::byte*>(call.in) + offset, part);
  second_.reset(call);
  second_.identity.count = first_.identity.count;
  second_.mode = first_.mode;
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
    first_.piece_at = me * part;
    first_.mode = reducing_mode(all, part, true);
    combine_into(first_, call, call.out, static_cast<const std::byte*>(call.in) + me * part, part);
  } else {
    first_.give.set_listed(call.in, call.in_counts, call.in_offsets, first_.element);
    first_.mode = reducing_mode(all, all / static_cast<std::size_t>(exchanger_.ranks()), false);   // every rank knows all counts, so all choose alike
    combine_into(first_, call, call.out,
                 static_cast<const std::byte*>(call.in) + bytes_of(call.in_offsets[me], call.dtype), part);
  }
  first_.past_cache = part > crossovers_.past_cache;
}

void Collective::plan_rooted_copy(const Call& call) {
  const bool root = exchanger_.rank() == call.root;
  const std::size_t in = bytes_of(call.in_count, call.dtype), out = bytes_of(call.out_count, call.dtype);
  const auto ranks = static_cast<std::size_t>(exchanger_.ranks());
  first_.waits_for_all = false;
  std::size_t handed = 0, part = 0;
  bool agreed = true;
  switch (call.op) {
    case Op::broadcast:
      handed = root ? in : out;
      first_.identity.count = root ? call.in_count : call.out_count;
      if (root) {
        first_.give.set_common(call.in, in);
      } else {
        first_.take.set_only(call.out, out, call.root);
      }
      break;
    case Op::gather:
      handed = in;
      first_.identity.count = call.in_count;
      first_.give.set_only(call.in, in, call.root);
      if (root) first_.take.set_uniform(call.out, in);
      break;
    case Op::scatter:
      handed = out * ranks;
      part = out;
      first_.piece_at = static_cast<std::size_t>(exchanger_.rank()) * out;
      first_.identity.count = call.out_count;
      if (root) first_.give.set_uniform(call.in, out);
      first_.take.set_only(call.out, out, call.root);
      break;
    case Op::gatherv:
      handed = in;
      agreed = false;
      first_.give.set_only(call.in, in, call.root);
      if (root) first_.take.set_listed(call.out, call.out_counts, call.out_offsets, first_.element);
      break;
    default:
      handed = in;
      agreed = false;
      if (root) first_.give.set_listed(call.in, call.in_counts, call.in_offsets, first_.element);
      first_.take.set_only(call.out, out, call.root);
      break;
  }
  first_.mode = copying_mode(handed, part ? part : handed, agreed);
  if (root && (call.op == Op::gather || call.op == Op::gatherv)) first_.waits_for_all = true;
  first_.past_cache = out > crossovers_.past_cache;
}

const void* Collective::safe_source(const Call& call, std::size_t extent) {
  const bool read_late = first_.mode == Mode::direct || first_.mode == Mode::streamed;
  if (call.in != call.out || !read_late || extent == 0) return call.in;
  if (scratch_.size() < extent) scratch_.resize(extent);
  std::memcpy(scratch_.data(), call.in, extent);   // peers still read what this rank overwrites
  return scratch_.data();
}

void Collective::plan_copy_to_all(const Call& call) {
  const std::size_t in = bytes_of(call.in_count, call.dtype), out = bytes_of(call.out_count, call.dtype);
  const auto ranks = static_cast<std::size_t>(exchanger_.ranks());
  switch (call.op) {
    case Op::all_gather:
      first_.identity.count = call.in_count;
      first_.give.set_common(call.in, in);
      first_.take.set_uniform(call.out, in);
      first_.mode = copying_mode(in, in, true);
      break;
    case Op::all_gatherv:
      first_.give.set_common(call.in, in);
      first_.take.set_listed(call.out, call.out_counts, call.out_offsets, first_.element);
      first_.mode = copying_mode(in, in, false);
      break;
    case Op::all_to_all:
      first_.identity.count = call.in_count;
      first_.mode = copying_mode(in, in / ranks, true);
      first_.give.set_uniform(safe_source(call, in), in / ranks);
      first_.piece_at = static_cast<std::size_t>(exchanger_.rank()) * (in / ranks);
      first_.take.set_uniform(call.out, in / ranks);
      break;
    default: {   // all_to_allv
      std::int64_t extent = 0;
      for (std::size_t r = 0; r < ranks; ++r) extent = std::max(extent, call.in_offsets[r] + call.in_counts[r]);
      first_.mode = copying_mode(in, in / ranks, false);
      first_.give.set_listed(safe_source(call, bytes_of(extent, call.dtype)), call.in_counts, call.in_offsets,
                                   first_.element);
      first_.take.set_listed(call.out, call.out_counts, call.out_offsets, first_.element);
      break;
    }
  }
  first_.past_cache = out > crossovers_.past_cache;
}

}  // namespace medley::shm
