// Pairwise exchange: in step s every rank sends to the rank s after it and receives from the rank s before it,
// so that all links carry the same load; each byte travels once. Reductions made of it combine the parts of all
// ranks at once, in rank order: |error| <= (n-1)·u·Σ|x|, u = 2^-53 for f64 and 2^-24 for f32, f16 and
// bf16, the last two plus one rounding.
#include <algorithm>
#include <deque>
#include <vector>

#include "algorithms/algorithms.hpp"
#include "algorithms/ring.hpp"

namespace medley::algorithms {
namespace {

constexpr std::size_t in_flight = 8;  // messages each way: enough to hide latency, few enough not to flood a receiver

/// This rank's input, copied when it shares memory with the output.
class Given {
 public:
  Given(const Job& job, const Parts& parts) : job_(job), slices_(parts), copy_(extent()) {
    const auto bytes = extent();
    if (bytes > 0) copy_bytes(copy_.data(), job.in(), bytes);
  }
  const std::byte* part(int rank) const {
    return (extent() > 0 ? copy_.data() : job_.in()) + job_.bytes(slices_.at(rank));
  }

 private:
  std::size_t extent() const {
    if (job_.in() != job_.out()) return 0;
    std::int64_t end = 0;
    for (int r = 0; r < job_.size; ++r) end = std::max(end, slices_.at(r) + slices_.count(r));
    return job_.bytes(end);
  }
  const Job& job_;
  Parts slices_;
  Scratch copy_;
};

/// Combines every rank's slice of `input`, in its own type, in rank order into `result`.
Task pairwise_combine(Job& job, const std::byte* input, Parts parts, std::byte* result) {
  const int n = job.size;
  const std::int64_t count = parts.count(job.rank);
  const std::size_t part = job.bytes(count);
  const Scratch arrived(part * static_cast<std::size_t>(n));
  std::vector<const std::byte*> sources(static_cast<std::size_t>(n));
  std::deque<Messages::Ticket> flying;
  for (int step = 1; step < n; ++step) {
    const int to = job.peer(step), from = job.peer(-step);
    std::byte* place = arrived.data() + static_cast<std::size_t>(from) * part;
    sources[static_cast<std::size_t>(from)] = place;
    flying.push_back(job.messages.recv(place, part, from));
    flying.push_back(job.messages.send(input + job.bytes(parts.at(to)), job.bytes(parts.count(to)), to));
    while (flying.size() > 2 * in_flight) {
      co_await job.messages.done(flying.front());
      flying.pop_front();
    }
  }
  co_await job.messages.all();
  sources[static_cast<std::size_t>(job.rank)] = input + job.bytes(parts.at(job.rank));
  job.combiner().finish_all(result, sources.data(), n, count);
}

}  // namespace

Task pairwise_all_to_all(Job& job) {
  const Parts in = job.in_slices(), out = job.out_slices();
  const Given given(job, in);
  std::deque<Messages::Ticket> flying;
  for (int step = 1; step < job.size; ++step) {
    const int to = job.peer(step), from = job.peer(-step);
    flying.push_back(job.messages.recv(job.out(out.at(from)), job.bytes(out.count(from)), from));
    flying.push_back(job.messages.send(given.part(to), job.bytes(in.count(to)), to));
    while (flying.size() > 2 * in_flight) {
      co_await job.messages.done(flying.front());
      flying.pop_front();
    }
  }
  copy_bytes(job.out(out.at(job.rank)), given.part(job.rank), job.bytes(in.count(job.rank)));
  co_await job.messages.all();
}

Task linear_all_to_all(Job& job) {  // here because it shares the copy of an in-place input
  const Parts in = job.in_slices(), out = job.out_slices();
  const Given given(job, in);
  for (int step = 1; step < job.size; ++step) {
    job.messages.recv(job.out(out.at(job.peer(-step))), job.bytes(out.count(job.peer(-step))), job.peer(-step));
  }
  for (int step = 1; step < job.size; ++step) {
    job.messages.send(given.part(job.peer(step)), job.bytes(in.count(job.peer(step))), job.peer(step));
  }
  copy_bytes(job.out(out.at(job.rank)), given.part(job.rank), job.bytes(in.count(job.rank)));
  co_await job.messages.all();
}

Task pairwise_reduce_scatter(Job& job) { co_await pairwise_combine(job, job.in(), job.in_slices(), job.out()); }

Task pairwise_all_reduce(Job& job) {
  const Parts parts = Parts::even(job.call.out_count, job.size);
  co_await pairwise_combine(job, job.in(), parts, job.out(parts.at(job.rank)));
  co_await ring_all_gather_phase(job, job.out(), parts);
}

}  // namespace medley::algorithms
