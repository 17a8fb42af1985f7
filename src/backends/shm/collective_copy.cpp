// Collectives that copy and do not reduce: from a root, to a root, and between all.
#include <algorithm>
#include <cstring>

#include "backends/shm/collective.hpp"

namespace medley::shm {

void Collective::plan_broadcast(const Call& call) {
  const bool root = exchanger_.rank() == call.root;
  const std::int64_t count = root ? call.in_count : call.out_count;
  const std::size_t bytes = bytes_of(count, call.dtype);
  first_.identity.count = count;
  first_.waits_for_all = false;
  first_.past_cache = bytes > crossovers_.past_cache;
  if (in_one_shot(bytes, crossovers_.broadcast_one_shot)) {
    if (root) {
      first_.give.set_common(call.in, bytes);
    } else {
      first_.take.set_only(call.out, bytes, call.root);
    }
    first_.mode = copying_mode(bytes, bytes <= crossovers_.staged, crossovers_.broadcast_segment, true);
    if (root && direct_reads_ && exchanger_.ranks() > 1 && exchanger_.may_stream() && bytes > exchanger_.slot_bytes() &&
        algorithm_.path == Algorithm::Path::by_size) {
      first_.timed = PathChoices::bucket(bytes);
      first_.mode = exchanger_.broadcast_paths().of(first_.timed).segment() ? Mode::streamed : Mode::direct;
    }
    first_.pipelined = pipelined(root);
    return;
  }
  // Two shots: each rank reads its own part from the root, then all read the parts of the others.
  const auto me = static_cast<std::size_t>(exchanger_.rank());
  split_evenly(count, first_.element);
  auto* all = static_cast<std::byte*>(root ? const_cast<void*>(call.in) : call.out);  // the root's buffer is only read
  std::byte* mine = all + bytes_of(offsets_[me], call.dtype);
  const std::size_t part = bytes_of(counts_[me], call.dtype);
  if (root) {
    first_.give.set_listed(all, counts_.data(), offsets_.data(), first_.element);
  } else {
    first_.take.set_only(mine, part, call.root);
  }
  const bool segment = algorithm_.path == Algorithm::Path::by_size
                           ? bytes <= crossovers_.broadcast_segment || !direct_reads_
                           : algorithm_.path == Algorithm::Path::segment;
  algorithm_.path = Algorithm::Path::by_size;  // the name selects the path of the second shot; the first is a scatter
  set_scatter_mode(bytes, root, false);
  second_.reset(call);
  second_.identity.count = count;
  second_.mode = second_mode(bytes, segment);
  second_.give.set_common(mine, part, call.root);  // the rank that has everything reads nothing
  if (!root) second_.take.set_listed(all, counts_.data(), offsets_.data(), first_.element);
  second_.waits_for_all = !root;
  second_.past_cache = first_.past_cache;
  two_ = true;
}

void Collective::plan_gather(const Call& call) {
  const bool root = exchanger_.rank() == call.root;
  const std::size_t in = bytes_of(call.in_count, call.dtype);
  const bool uneven = call.op == Op::gatherv;
  first_.waits_for_all = root;
  first_.give.set_only(call.in, in, call.root);
  if (!uneven) first_.identity.count = call.in_count;
  if (root && uneven) {
    first_.take.set_listed(call.out, call.out_counts, call.out_offsets, first_.element);
  } else if (root) {
    first_.take.set_uniform(call.out, in);
  }
  first_.mode = copying_mode(in, in <= crossovers_.staged, crossovers_.gather_segment, !uneven);
  first_.past_cache = bytes_of(call.out_count, call.dtype) > crossovers_.past_cache;
}

void Collective::plan_scatter(const Call& call) {
  const bool root = exchanger_.rank() == call.root;
  const std::size_t in = bytes_of(call.in_count, call.dtype), out = bytes_of(call.out_count, call.dtype);
  first_.waits_for_all = false;
  first_.take.set_only(call.out, out, call.root);
  first_.past_cache = out > crossovers_.past_cache;
  if (call.op == Op::scatterv) {
    if (root) first_.give.set_listed(call.in, call.in_counts, call.in_offsets, first_.element);
    return set_scatter_mode(in, root, false);
  }
  first_.part_at = static_cast<std::size_t>(exchanger_.rank()) * out;
  first_.identity.count = call.out_count;
  if (root) first_.give.set_uniform(call.in, out);
  const std::size_t all = out * static_cast<std::size_t>(exchanger_.ranks());
  set_scatter_mode(all, root, true);
  if (root && first_.mode != Mode::in_line && scatters_mixed(all, out)) {
    first_.mode = Mode::direct;
    first_.pipelined = false;
    first_.scattered = crossovers_.scattered;
  }
}

/// Whether the root of a scatter lays out some parts while the readers of the others read them directly.
bool Collective::scatters_mixed(std::size_t all, std::size_t part) const {
  if (!direct_reads_ || part == 0 || part > exchanger_.slot_bytes()) return false;
  if (algorithm_.path != Algorithm::Path::by_size) return algorithm_.path == Algorithm::Path::mixed;
  return all >= crossovers_.least_mixed_scatter;
}

/// `bytes`: all parts together.
void Collective::set_scatter_mode(std::size_t bytes, bool root, bool agreed) {
  first_.mode = copying_mode(bytes, bytes <= crossovers_.scatter_staged, crossovers_.scatter_segment, agreed);
  first_.pipelined = pipelined(root);
}

const void* Collective::safe_source(const Call& call, std::size_t extent) {
  const bool read_late = first_.mode == Mode::direct || first_.mode == Mode::streamed;
  if (call.in != call.out || !read_late || extent == 0) return call.in;
  if (scratch_.size() < extent) scratch_.resize(extent);
  std::memcpy(scratch_.data(), call.in, extent);  // peers still read what this rank overwrites
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
      first_.mode = copying_mode(in, in <= crossovers_.staged, crossovers_.exchange_segment, true);
      break;
    case Op::all_gatherv:
      first_.give.set_common(call.in, in);
      first_.take.set_listed(call.out, call.out_counts, call.out_offsets, first_.element);
      first_.mode = copying_mode(in, in <= crossovers_.staged, crossovers_.exchange_segment, false);
      break;
    case Op::all_to_all:
      first_.identity.count = call.in_count;
      first_.mode = copying_mode(in, in / ranks <= crossovers_.staged, crossovers_.exchange_segment, true);
      first_.give.set_uniform(safe_source(call, in), in / ranks);
      first_.part_at = static_cast<std::size_t>(exchanger_.rank()) * (in / ranks);
      first_.take.set_uniform(call.out, in / ranks);
      break;
    default: {  // all_to_allv
      std::int64_t extent = 0;
      for (std::size_t r = 0; r < ranks; ++r) extent = std::max(extent, call.in_offsets[r] + call.in_counts[r]);
      first_.mode = copying_mode(in, in / ranks <= crossovers_.staged, crossovers_.exchange_segment, false);
      first_.give.set_listed(safe_source(call, bytes_of(extent, call.dtype)), call.in_counts, call.in_offsets,
                             first_.element);
      first_.take.set_listed(call.out, call.out_counts, call.out_offsets, first_.element);
      break;
    }
  }
  first_.past_cache = out > crossovers_.past_cache;
}

}  // namespace medley::shm
