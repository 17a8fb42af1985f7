// Dissemination barrier: in round k every rank signals the rank 2^k after it and waits for the one 2^k before
// it; after log2(n) rounds every rank has heard, directly or indirectly, from every other.
#include "algorithms/algorithms.hpp"

namespace medley::algorithms {

Task dissemination_barrier(Job& job) {
  std::byte mine{1}, theirs{};
  for (int distance = 1; distance < job.size; distance *= 2) {
    job.messages.recv(&theirs, 1, job.peer(-distance));
    job.messages.send(&mine, 1, job.peer(distance));
    co_await job.messages.all();
  }
}

}  // namespace medley::algorithms
