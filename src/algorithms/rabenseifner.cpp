// Rabenseifner's algorithm: recursive halving, then recursive doubling; log2(n) steps each way and little more than the
// minimal data, for medium tensors. all_reduce begins with the nearest partner, so that ranks which are numbered host
// by host exchange the large halves inside their host and the small ones between hosts. Fixed order, each element
// combined on one rank: |error| <= ceil(log2 n)·u·Σ|x|, u = 2^-53 for f64 and 2^-24 for f32, f16 and bf16, the last two
// plus one rounding of the result.
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

/// Halves with the nearest partner first, then doubles in reverse: a survivor ends the first half with the part whose
/// number is its own with the bits reversed.
Task halve_and_double(Job& job, const Fold& fold, const Combiner& combiner, std::byte* partial, const Share& share) {
  const std::size_t wire = combiner.wire();
  const int index = fold.index(job.rank);
  int own = 0, length = fold.power;  // the parts that this rank still combines
  const Scratch incoming(static_cast<std::size_t>(share.count(0, fold.power)) * wire);
  for (int distance = 1; distance < fold.power; distance *= 2) {
    length /= 2;
    const bool lower = (index & distance) == 0;
    const int keep = lower ? own : own + length, give = lower ? own + length : own,
              partner = fold.rank_of(index ^ distance);
    const std::int64_t kept = share.count(keep, length);
    std::byte* const mine = partial + static_cast<std::size_t>(share.start(keep)) * wire;
    job.messages.recv(incoming.data(), static_cast<std::size_t>(kept) * wire, partner);
    job.messages.send(partial + static_cast<std::size_t>(share.start(give)) * wire,
                      static_cast<std::size_t>(share.count(give, length)) * wire, partner);
    co_await job.messages.all();
    combiner.combine(mine, lower ? mine : incoming.data(), lower ? incoming.data() : mine, kept);
    own = keep;
  }
  combiner.finish(job.out(share.start(own)), partial + static_cast<std::size_t>(share.start(own)) * wire,
                  share.count(own));
  for (int distance = fold.power / 2; distance > 0; distance /= 2) {
    const int theirs = (index & distance) == 0 ? own + length : own - length, partner = fold.rank_of(index ^ distance);
    job.messages.recv(job.out(share.start(theirs)), job.bytes(share.count(theirs, length)), partner);
    job.messages.send(job.out(share.start(own)), job.bytes(share.count(own, length)), partner);
    co_await job.messages.all();
    own = std::min(own, theirs);
    length *= 2;
  }
}

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
  if (fold.survives(job.rank)) co_await halve_and_double(job, fold, combiner, partial, share);
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
