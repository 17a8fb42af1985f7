// Recursive doubling: log2(n) exchanges of everything with partners at distance 1, 2, 4, …; the fewest steps,
// for small tensors. Partners combine the same two partial results, so all ranks get the same bits in a fixed
// order: |error| <= ceil(log2 n)·u·Σ|x|, u = 2^-53 for f64 and 2^-24 for f32, f16 and bf16, the last two plus
// one rounding.
#include "algorithms/algorithms.hpp"
#include "algorithms/fold.hpp"

namespace medley::algorithms {

Task recursive_doubling_all_reduce(Job& job) {
  const Combiner combiner = job.combiner();
  const Fold fold(job.size);
  const std::int64_t count = job.call.out_count;
  const std::size_t wire = static_cast<std::size_t>(count) * combiner.wire();
  const Scratch scratch(combiner.widens() ? wire : 0), incoming(fold.survives(job.rank) ? wire : 0);
  std::byte* partial = combiner.widens() ? scratch.data() : job.out();
  if (fold.survives(job.rank)) combiner.load(partial, job.in(), count);
  co_await fold_in(job, fold, combiner, partial, count);
  if (fold.survives(job.rank)) {
    for (int distance = 1; distance < fold.power; distance *= 2) {
      const int partner = fold.rank_of(fold.index(job.rank) ^ distance);
      job.messages.recv(incoming.data(), wire, partner);
      job.messages.send(partial, wire, partner);
      co_await job.messages.all();
      const bool after = partner > job.rank;  // in rank order, though no bit depends on it
      combiner.combine(partial, after ? partial : incoming.data(), after ? incoming.data() : partial, count);
    }
    combiner.finish(job.out(), partial, count);
  }
  co_await fold_out(job, fold, job.out(), job.bytes(count));
}

Task recursive_doubling_all_gather(Job& job) {
  const Fold fold(job.size);
  const std::size_t part = job.bytes(job.call.in_count);
  const auto place = [&](int rank) { return job.out() + static_cast<std::size_t>(rank) * part; };
  copy_bytes(place(job.rank), job.in(), part);
  if (fold.paired(job.rank)) {
    if (fold.survives(job.rank)) {
      job.messages.recv(place(job.rank - 1), part, job.rank - 1);
    } else {
      job.messages.send(place(job.rank), part, job.rank + 1);
    }
    co_await job.messages.all();
  }
  for (int distance = 1; fold.survives(job.rank) && distance < fold.power; distance *= 2) {
    const int index = fold.index(job.rank), partner = index ^ distance;
    // Blocks of 2·distance survivors: each half has all its own parts and receives the other's.
    const int mine = index / distance * distance, theirs = partner / distance * distance;
    const auto bytes_of = [&](int from) {
      return static_cast<std::size_t>(fold.first(from + distance) - fold.first(from)) * part;
    };
    job.messages.recv(place(fold.first(theirs)), bytes_of(theirs), fold.rank_of(partner));
    job.messages.send(place(fold.first(mine)), bytes_of(mine), fold.rank_of(partner));
    co_await job.messages.all();
  }
  co_await fold_out(job, fold, job.out(), part * static_cast<std::size_t>(job.size));
}

}  // namespace medley::algorithms
