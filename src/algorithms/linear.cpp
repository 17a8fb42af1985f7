// Linear: the root exchanges messages with every rank directly, or all ranks with all; each byte travels once. For
// large parts, and for v-collectives whose counts only the root knows.
#include "algorithms/algorithms.hpp"

namespace medley::algorithms {

Task linear_gather(Job& job) {
  if (job.rank != job.call.root) {
    job.messages.send(job.in(), job.bytes(job.call.in_count), job.call.root);
  } else {
    const Parts out = job.out_slices();
    for (int r = 0; r < job.size; ++r) {
      if (r != job.rank) job.messages.recv(job.out(out.at(r)), job.bytes(out.count(r)), r);
    }
    copy_bytes(job.out(out.at(job.rank)), job.in(), job.bytes(job.call.in_count));
  }
  co_await job.messages.all();
}

Task linear_scatter(Job& job) {
  if (job.rank != job.call.root) {
    job.messages.recv(job.out(), job.bytes(job.call.out_count), job.call.root);
  } else {
    const Parts in = job.in_slices();
    for (int r = 0; r < job.size; ++r) {
      if (r != job.rank) job.messages.send(job.in(in.at(r)), job.bytes(in.count(r)), r);
    }
    copy_bytes(job.out(), job.in(in.at(job.rank)), job.bytes(in.count(job.rank)));
  }
  co_await job.messages.all();
}

Task linear_all_gather(Job& job) {
  const Parts out = job.out_slices();
  for (int step = 1; step < job.size; ++step) {
    const int from = job.peer(-step);
    job.messages.recv(job.out(out.at(from)), job.bytes(out.count(from)), from);
  }
  for (int step = 1; step < job.size; ++step) job.messages.send(job.in(), job.bytes(job.call.in_count), job.peer(step));
  copy_bytes(job.out(out.at(job.rank)), job.in(), job.bytes(job.call.in_count));
  co_await job.messages.all();
}

}  // namespace medley::algorithms
