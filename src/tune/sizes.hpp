// Which sizes a benchmark measures, how many elements a size means for an operation, and how bandwidth is
// counted. Follows nccl-tests: `bytes` is the full tensor everywhere. Used by `medley bench` and the programs
// in bench/mpi.
#pragma once

#include <cstddef>
#include <vector>

#include <medley/types.hpp>

namespace medley::tune {

/// `first`, then four times as much at each step, and `last`.
inline std::vector<std::size_t> size_ladder(std::size_t first, std::size_t last) {
  std::vector<std::size_t> sizes;
  for (std::size_t size = first; size < last; size = size ? size * 4 : 4) sizes.push_back(size);
  sizes.push_back(last);
  return sizes;
}

/// Whether every rank holds one n-th of the tensor on one side of the operation.
constexpr bool divides_among_ranks(Op op) noexcept {
  switch (op) {
    case Op::all_gather:
    case Op::reduce_scatter:
    case Op::all_to_all:
    case Op::gather:
    case Op::scatter:
    case Op::all_gatherv:
    case Op::reduce_scatterv:
    case Op::all_to_allv:
    case Op::gatherv:
    case Op::scatterv: return true;
    default: return false;
  }
}

/// Elements of the full tensor for `bytes`: at least one, and rounded up to a multiple of the ranks where
/// each gets a part. A barrier has none.
constexpr std::size_t elements_of(Op op, std::size_t bytes, std::size_t element_bytes, int ranks) noexcept {
  if (op == Op::barrier) return 0;
  const std::size_t elements = bytes < element_bytes ? 1 : bytes / element_bytes;
  if (!divides_among_ranks(op)) return elements;
  const auto n = static_cast<std::size_t>(ranks);
  return (elements + n - 1) / n * n;
}

/// The factor from algbw (bytes / time) to busbw.
constexpr double bus_factor(Op op, int ranks) noexcept {
  const double n = ranks;
  if (op == Op::all_reduce) return 2 * (n - 1) / n;
  if (divides_among_ranks(op)) return (n - 1) / n;
  return 1;
}

}  // namespace medley::tune
