// One filled-in collective as its algorithm sees it: the call, the ranks, and the messages.
#pragma once

#include <cstddef>
#include <cstring>
#include <medley/backend.hpp>
#include <memory>

#include "algorithms/combiner.hpp"
#include "algorithms/device_frames.hpp"
#include "algorithms/messages.hpp"
#include "algorithms/parts.hpp"
#include "algorithms/scratch.hpp"

namespace medley::algorithms {

struct Job {
  const Call& call;
  int rank;
  int size;
  Messages& messages;
  DeviceWork* device = nullptr;  ///< of a compressed collective on CUDA memory, whose call has addresses of the device

  const std::byte* in() const { return static_cast<const std::byte*>(call.in); }
  std::byte* out() const { return static_cast<std::byte*>(call.out); }
  std::size_t element() const { return size_of(call.dtype); }
  std::size_t bytes(std::int64_t count) const { return static_cast<std::size_t>(count) * element(); }
  const std::byte* in(std::int64_t at) const { return in() + bytes(at); }
  std::byte* out(std::int64_t at) const { return out() + bytes(at); }
  Combiner combiner() const { return {call.dtype, call.reduce, size}; }
  /// The rank `steps` after (or before) this one on the ring of all ranks.
  int peer(int steps) const { return ((rank + steps) % size + size) % size; }

  /// Parts of the large side: what all ranks send to (or receive from) this one.
  Parts in_slices() const {
    return call.in_counts ? Parts::listed(call.in_counts, call.in_offsets) : Parts::equal(call.in_count / size);
  }
  Parts out_slices() const {
    return call.out_counts ? Parts::listed(call.out_counts, call.out_offsets) : Parts::equal(call.out_count / size);
  }
};

inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

}  // namespace medley::algorithms
