// Rabenseifner's algorithm: recursive halving, then recursive doubling; log2(n) steps each way and little more than the
// minimal data, for medium tensors. Fixed order, each element combined on one rank: |error| <= ceil(log2
// n)·u·Σ|x|, u = 2^-53 for f64 and 2^-24 for f32, f16 and bf16, the last two plus one rounding of the result.
#include "algorithms/algorithms.hpp"
#include "algorithms/recursive_halving.hpp"

namespace medley::algorithms {
namespace {

/// Survivors' parts: elements [start(i), start(i+1)) are combined on survivor i.
struct Share {
  const Fold& fold;
  const std::vector<std::int64_t>& starts;
  std::int64_t start(int index) const { return starts[static_cast<std::size_t>(fold.first(index))]; }
  std::int64_t count(int index, int survivors = 1) const { return start(index + survivors) - start(index); }
};

}  // namespace

Task rabenseifner_all_reduce(Job& job) {
  const Combiner combiner = job.combiner();
  const Fold fold(job.size);
  const std::int64_t count = job.call.out_count;
  const std::vector<std::int64_t> starts = side_by_side(Parts::even(count, job.size), job.size);
  const Share share{fold, starts};
  const Scratch scratch(combiner.widens() ? static_cast<std::size_t>(count) * combiner.wire() : 0);
  std::byte* partial = combiner.widens() ? scratch.data() : job.out();
  if (fold.survives(job.rank)) combiner.load(partial, job.in(), count);
  co_await fold_in(job, fold, combiner, partial, count);
  co_await halve(job, fold, combiner, partial, starts);
  if (fold.survives(job.rank)) {
    const int index = fold.index(job.rank);
    const std::int64_t own = share.start(index);
    combiner.finish(job.out(own), partial + static_cast<std::size_t>(own) * combiner.wire(),
                    share.count(index));
    for (int distance = 1; distance < fold.power; distance *= 2) {
      const int mine = index / distance * distance, theirs = (index ^ distance) / distance * distance;
      const int partner = fold.rank_of(index ^ distance);
      job.messages.recv(job.out(share.start(theirs)), job.bytes(share.count(theirs, distance)), partner);
      job.messages.send(job.out(share.start(mine)), job.bytes(share.count(mine, distance)), partner);
      co_await job.messages.all();
    }
  }
  co_await fold_out(job, fold, job.out(), job.bytes(count));
}

Task rabenseifner_reduce(Job& job) {
  const Combiner combiner = job.combiner();
  const Fold fold(job.size);
  const std::int64_t count = job.call.in_count;
  const std::vector<std::int64_t> starts = side_by_side(Parts::even(count, job.size), job.size);
  const Share share{fold, starts};
  const Scratch partial(fold.survives(job.rank) ? static_cast<std::size_t>(count) * combiner.wire() : 0);
  if (fold.survives(job.rank)) combiner.load(partial.data(), job.in(), count);
  co_await fold_in(job, fold, combiner, partial.data(), count);
  co_await halve(job, fold, combiner, partial.data(), starts);
  const bool root = job.rank == job.call.root;
  for (int index = 0; root && index < fold.power; ++index) {
    if (fold.rank_of(index) == job.rank) continue;
    job.messages.recv(job.out(share.start(index)), job.bytes(share.count(index)), fold.rank_of(index));
  }
  const int index = fold.survives(job.rank) ? fold.index(job.rank) : 0;
  const std::int64_t own = fold.survives(job.rank) ? share.count(index) : 0;
  const Scratch finished(root ? 0 : job.bytes(own));
  if (own > 0) {
    std::byte* to = root ? job.out(share.start(index)) : finished.data();
    combiner.finish(to, partial.data() + static_cast<std::size_t>(share.start(index)) * combiner.wire(), own);
    if (!root) job.messages.send(to, job.bytes(own), job.call.root);
  }
  co_await job.messages.all();
}

}  // namespace medley::algorithms
