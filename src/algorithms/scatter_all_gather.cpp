// Broadcast of a large tensor as a scatter and an all_gather: the root sends little more than the tensor
// once, and all ranks forward it (van de Geijn's algorithm).
#include "algorithms/algorithms.hpp"
#include "algorithms/ring.hpp"

namespace medley::algorithms {

Task scatter_all_gather_broadcast(Job& job) {
  const bool root = job.rank == job.call.root;
  const std::int64_t count = root ? job.call.in_count : job.call.out_count;
  // The root's buffer is only read: the root scatters its parts and receives none, since it has them all.
  auto* buffer = static_cast<std::byte*>(root ? const_cast<void*>(job.call.in) : job.call.out);
  const Parts parts = Parts::even(count, job.size);
  const auto place = [&](int rank) { return buffer + job.bytes(parts.at(rank)); };
  if (root) {
    for (int step = 1; step < job.size; ++step) {
      job.messages.send(place(job.peer(step)), job.bytes(parts.count(job.peer(step))), job.peer(step));
    }
  } else {
    job.messages.recv(place(job.rank), job.bytes(parts.count(job.rank)), job.call.root);
  }
  co_await job.messages.all();
  co_await ring_all_gather_phase(job, buffer, parts, job.call.root);
}

}  // namespace medley::algorithms
