// Recursive halving: log2(n) exchanges: half the data with a partner half the ranks away, then a quarter,
// … Fixed order; |error| <= ceil(log2 n)·u·Σ|x|, u = 2^-53 for f64 and 2^-24 for f32, f16 and bf16, the last
// two plus one rounding of the result.
#include "algorithms/recursive_halving.hpp"

#include "algorithms/algorithms.hpp"

namespace medley::algorithms {

std::vector<std::int64_t> side_by_side(const Parts& parts, int n) {
  std::vector<std::int64_t> starts{0};
  for (int r = 0; r < n; ++r) starts.push_back(starts.back() + parts.count(r));
  return starts;
}

Task halve(Job& job, const Fold& fold, const Combiner& combiner, std::byte* partial,
           const std::vector<std::int64_t>& starts) {
  if (!fold.survives(job.rank)) co_return;
  const std::size_t wire = combiner.wire();
  const auto start_of = [&](int index) { return starts[static_cast<std::size_t>(fold.first(index))]; };
  const Scratch incoming(static_cast<std::size_t>(starts.back()) * wire);
  const int index = fold.index(job.rank);
  for (int distance = fold.power / 2; distance > 0; distance /= 2) {
    const int base = index / (2 * distance) * (2 * distance);
    const bool lower = index < base + distance;
    const int keep = lower ? base : base + distance, give = lower ? base + distance : base;
    const int partner = fold.rank_of(index ^ distance);
    const std::int64_t kept = start_of(keep + distance) - start_of(keep);
    const std::int64_t given = start_of(give + distance) - start_of(give);
    std::byte* mine = partial + static_cast<std::size_t>(start_of(keep)) * wire;
    job.messages.recv(incoming.data(), static_cast<std::size_t>(kept) * wire, partner);
    job.messages.send(partial + static_cast<std::size_t>(start_of(give)) * wire, static_cast<std::size_t>(given) * wire,
                      partner);
    co_await job.messages.all();
    combiner.combine(mine, lower ? mine : incoming.data(), lower ? incoming.data() : mine, kept);
  }
}

Task recursive_halving_reduce_scatter(Job& job) {
  const Combiner combiner = job.combiner();
  const Fold fold(job.size);
  const Parts parts = job.in_slices();
  const std::vector<std::int64_t> starts = side_by_side(parts, job.size);
  const auto packed = [&](int rank) { return static_cast<std::size_t>(starts[static_cast<std::size_t>(rank)]); };
  const std::int64_t own = parts.count(job.rank);
  if (!fold.survives(job.rank)) {  // sends its input slice by slice, since parts may have gaps between them
    for (int r = 0; r < job.size; ++r) job.messages.send(job.in(parts.at(r)), job.bytes(parts.count(r)), job.rank + 1);
    co_await job.messages.all();
    job.messages.recv(job.out(), job.bytes(own), job.rank + 1);
    co_await job.messages.all();
    co_return;
  }
  const std::size_t wire = combiner.wire();
  const Scratch partial(packed(job.size) * wire);
  for (int r = 0; r < job.size; ++r)
    combiner.load(partial.data() + packed(r) * wire, job.in(parts.at(r)), parts.count(r));
  if (fold.paired(job.rank)) {
    const Scratch other(packed(job.size) * job.element());
    for (int r = 0; r < job.size; ++r) {
      job.messages.recv(other.data() + packed(r) * job.element(), job.bytes(parts.count(r)), job.rank - 1);
    }
    co_await job.messages.all();
    combiner.add(partial.data(), partial.data(), other.data(), starts.back());
  }
  co_await halve(job, fold, combiner, partial.data(), starts);
  if (fold.paired(job.rank)) {
    const Scratch theirs(job.bytes(parts.count(job.rank - 1)));
    combiner.finish(theirs.data(), partial.data() + packed(job.rank - 1) * wire, parts.count(job.rank - 1));
    job.messages.send(theirs.data(), job.bytes(parts.count(job.rank - 1)), job.rank - 1);
    combiner.finish(job.out(), partial.data() + packed(job.rank) * wire, own);
    co_await job.messages.all();
  } else {
    combiner.finish(job.out(), partial.data() + packed(job.rank) * wire, own);
  }
}

}  // namespace medley::algorithms
