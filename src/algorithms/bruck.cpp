// Bruck's algorithms: log2(n) messages per rank instead of n-1, for parts so small that the number of
// messages dominates. The price is copies, and in all_to_all each part travels log2(n)/2 times.
#include <algorithm>
#include <vector>

#include "algorithms/algorithms.hpp"

namespace medley::algorithms {

Task bruck_all_gather(Job& job) {
  const int n = job.size;
  const std::size_t part = job.bytes(job.call.in_count);
  const Scratch parts(part * static_cast<std::size_t>(n));  // block i belongs to the rank i after this one
  const auto block = [&](int i) { return parts.data() + static_cast<std::size_t>(i) * part; };
  copy_bytes(block(0), job.in(), part);
  for (int have = 1; have < n; have *= 2) {
    const auto now = static_cast<std::size_t>(std::min(have, n - have));
    job.messages.recv(block(have), now * part, job.peer(have));
    job.messages.send(block(0), now * part, job.peer(-have));
    co_await job.messages.all();
  }
  for (int i = 0; i < n; ++i) copy_bytes(job.out() + static_cast<std::size_t>(job.peer(i)) * part, block(i), part);
}

Task bruck_all_to_all(Job& job) {
  const int n = job.size;
  const std::size_t part = job.bytes(job.call.in_count) / static_cast<std::size_t>(n);
  const auto room = static_cast<std::size_t>(n) * part;
  const Scratch parts(room), leaving(room), arriving(room);
  const auto block = [&](int i) { return parts.data() + static_cast<std::size_t>(i) * part; };
  for (int i = 0; i < n; ++i) copy_bytes(block(i), job.in() + static_cast<std::size_t>(job.peer(i)) * part, part);
  for (int distance = 1; distance < n; distance *= 2) {  // block i must still travel i ranks further: bit by bit
    std::size_t packed = 0;
    for (int i = distance; i < n; ++i) {
      if (i & distance) copy_bytes(leaving.data() + part * packed++, block(i), part);
    }
    job.messages.recv(arriving.data(), packed * part, job.peer(-distance));
    job.messages.send(leaving.data(), packed * part, job.peer(distance));
    co_await job.messages.all();
    packed = 0;
    for (int i = distance; i < n; ++i) {
      if (i & distance) copy_bytes(block(i), arriving.data() + part * packed++, part);
    }
  }
  for (int i = 0; i < n; ++i) copy_bytes(job.out() + static_cast<std::size_t>(job.peer(-i)) * part, block(i), part);
}

}  // namespace medley::algorithms
