// What each operation does to memory, written independently of any backend: the size of a rank's input and
// output, and which input each element of its output comes from. The reference of the conformance suite.
#pragma once

#include <algorithm>
#include <cstdint>
#include <medley/comm.hpp>
#include <medley/types.hpp>
#include <string>
#include <vector>

namespace medley::conformance {

/// One operation to try. `count` is what the op's name counts: the tensor, or one rank's part of it; in
/// v-collectives, parts are zero to three times this unit.
struct Case {
  Op op{};
  DType dtype = DType::f32;
  ReduceOp reduce = ReduceOp::sum;
  std::int64_t count = 0;
  int root = 0;
  bool in_place = false;
  bool gaps = false;  ///< v-collectives: parts in reverse order with gaps between them
  std::uint64_t seed = 1;
};

inline std::string describe(const Case& c, int ranks) {
  std::string text = std::string(name(c.op)) + " of " + std::to_string(c.count) + " " + std::string(name(c.dtype)) +
                     " by " + std::string(name(c.reduce)) + ", root " + std::to_string(c.root) + ", " +
                     std::to_string(ranks) + " ranks";
  if (c.in_place) text += ", in place";
  if (c.gaps) text += ", with gaps";
  return text + ", case " + std::to_string(c.seed);
}

/// Parts of a v-collective.
struct PartLists {
  std::vector<std::int64_t> counts, offsets;
  bool explicit_offsets = false;
  std::int64_t extent = 0;

  PartLists() = default;
  PartLists(std::vector<std::int64_t> of_each, bool gaps) : counts(std::move(of_each)), offsets(counts.size()) {
    explicit_offsets = gaps;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const std::size_t r = gaps ? counts.size() - 1 - i : i;
      if (gaps) extent += 3;
      offsets[r] = extent;
      extent += counts[r];
    }
    if (gaps) extent += 2;
  }
  Parts parts() const {
    if (!explicit_offsets) return {counts};
    return {counts, offsets};
  }
};

inline constexpr int every_rank = -1;

/// Elements [to, to + count) of the output come from elements [at, …) of `from`'s input, or of all inputs
/// reduced.
struct Move {
  std::int64_t to, count;
  int from;
  std::int64_t at;
};

struct Shape {
  bool gives = false, takes = false;
  std::int64_t in = 0, out = 0;        ///< elements of the two buffers
  std::int64_t in_at = 0, out_at = 0;  ///< their offsets when they share memory
  PartLists in_parts{}, out_parts{};
  std::vector<Move> moves{};
};

/// What rank `from` sends to rank `to` in v-collectives: unequal, and nothing for some.
inline std::int64_t v_count(const Case& c, int from, int to) {
  const std::uint64_t step = (static_cast<std::uint64_t>(from) * 5 + static_cast<std::uint64_t>(to) * 3 + c.seed) % 4;
  return c.count * static_cast<std::int64_t>(step) + (step == 3 ? 1 : 0);
}

inline std::vector<std::int64_t> v_counts(int n, auto count_of) {
  std::vector<std::int64_t> counts;
  for (int r = 0; r < n; ++r) counts.push_back(count_of(r));
  return counts;
}

inline Shape equal_shape(const Case& c, int rank, int n) {
  Shape s{.gives = true, .takes = true, .in = c.count, .out = c.count};
  const bool root = rank == c.root;
  const std::int64_t all = c.count * n;
  switch (c.op) {
    case Op::broadcast:
      s.gives = root;
      s.takes = !root;
      if (!root) s.moves = {{0, c.count, c.root, 0}};
      break;
    case Op::reduce:
      s.takes = root;
      if (root) s.moves = {{0, c.count, every_rank, 0}};
      break;
    case Op::all_reduce: s.moves = {{0, c.count, every_rank, 0}}; break;
    case Op::gather:
    case Op::all_gather:
      s.takes = root || c.op == Op::all_gather;
      s.out = all;
      s.in_at = rank * c.count;
      for (int r = 0; r < n && s.takes; ++r) s.moves.push_back({r * c.count, c.count, r, 0});
      break;
    case Op::scatter:
      s.gives = root;
      s.in = all;
      s.out_at = rank * c.count;
      s.moves = {{0, c.count, c.root, rank * c.count}};
      break;
    case Op::reduce_scatter:
      s.in = all;
      s.out_at = rank * c.count;
      s.moves = {{0, c.count, every_rank, rank * c.count}};
      break;
    case Op::all_to_all:
      s.in = s.out = all;
      for (int r = 0; r < n; ++r) s.moves.push_back({r * c.count, c.count, r, rank * c.count});
      break;
    default: s = {}; break;  // barrier
  }
  return s;
}

inline Shape v_shape(const Case& c, int rank, int n) {
  const auto me = static_cast<std::size_t>(rank);
  const bool root = rank == c.root;
  Shape s{.gives = true, .takes = true};
  // Each rank's part, for operations where it sends or receives one part.
  const PartLists each(v_counts(n, [&](int r) { return v_count(c, r, 0); }), c.gaps);
  switch (c.op) {
    case Op::gatherv:
    case Op::all_gatherv:
      s.takes = root || c.op == Op::all_gatherv;
      s.in = each.counts[me];
      s.out = each.extent;
      s.in_at = each.offsets[me];
      s.out_parts = each;
      for (std::size_t r = 0; r < each.counts.size() && s.takes; ++r) {
        s.moves.push_back({each.offsets[r], each.counts[r], static_cast<int>(r), 0});
      }
      break;
    case Op::scatterv:
    case Op::reduce_scatterv:
      s.gives = root || c.op == Op::reduce_scatterv;
      s.in = each.extent;
      s.out = each.counts[me];
      s.out_at = each.offsets[me];
      s.in_parts = each;
      s.moves = {{0, s.out, c.op == Op::scatterv ? c.root : every_rank, each.offsets[me]}};
      break;
    default:  // all_to_allv
      s.in_parts = PartLists(v_counts(n, [&](int r) { return v_count(c, rank, r); }), c.gaps);
      s.out_parts = PartLists(v_counts(n, [&](int r) { return v_count(c, r, rank); }), c.gaps);
      s.in = s.in_parts.extent;
      s.out = s.out_parts.extent;
      for (int r = 0; r < n; ++r) {
        const PartLists theirs(v_counts(n, [&](int to) { return v_count(c, r, to); }), c.gaps);
        const auto i = static_cast<std::size_t>(r);
        s.moves.push_back({s.out_parts.offsets[i], s.out_parts.counts[i], r, theirs.offsets[me]});
      }
      break;
  }
  return s;
}

inline Shape shape_of(const Case& c, int rank, int n) {
  return is_v_collective(c.op) ? v_shape(c, rank, n) : equal_shape(c, rank, n);
}

}  // namespace medley::conformance
