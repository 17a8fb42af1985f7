// Reduces any number of ranks to a power of two: the first ranks pair up, and one of each pair represents
// both. Used by every algorithm that doubles or halves distances.
#pragma once

#include <bit>

#include "algorithms/job.hpp"

namespace medley::algorithms {

struct Fold {
  int power;  ///< the largest power of two that is at most n: the number of survivors
  int pairs;  ///< ranks 0 to 2·pairs-1 pair up, the odd one survives

  explicit Fold(int n) : power(static_cast<int>(std::bit_floor(static_cast<unsigned>(n)))), pairs(n - power) {}
  bool paired(int rank) const { return rank < 2 * pairs; }
  bool survives(int rank) const { return !paired(rank) || rank % 2 == 1; }
  /// A survivor's index among the survivors, and back.
  int index(int rank) const { return paired(rank) ? rank / 2 : rank - pairs; }
  int rank_of(int index) const { return index < pairs ? 2 * index + 1 : index + pairs; }
  /// The first rank that survivor `index` represents; adjacent survivors represent adjacent ranks.
  int first(int index) const { return index < pairs ? 2 * index : index + pairs; }
};

/// Combines the input of a pair's other rank into the survivor's `partial` (wire type, loaded already).
Task fold_in(Job& job, const Fold& fold, const Combiner& combiner, std::byte* partial, std::int64_t count);

/// Sends the finished output back to the pair's other rank.
Task fold_out(Job& job, const Fold& fold, std::byte* out, std::size_t bytes);

}  // namespace medley::algorithms
