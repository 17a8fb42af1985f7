// From measured cells to routes by size: which rows count for a comm, where one route gives way to the next, and that
// near-equal routes don't alternate. Asked when a comm is made, and by `medley explain`.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "route/table.hpp"

namespace medley::route {

// A route within this of the best at a size is as good there: less than a measurement tells apart, and below the 5 % or
// 0.2 µs that `auto` may lose to the best.
inline constexpr double near_ratio = 1.03;
inline constexpr double near_us = 0.1;
/// What counts for a route that a row does not have: it was so far behind that it was not measured.
inline constexpr double absent_ratio = 5;
/// So far behind it still counts as equal where the intervals of the two medians overlap.
inline constexpr double tie_ratio = 1.06;
/// What is worth giving for not having to tell each other the sizes of uneven operations, which costs two in sixteen about the
/// time of a small one together (engine/size_agreement.hpp).
inline constexpr double telling_us = 0.2;
inline constexpr double telling_ratio = 1.05;

/// Routes of an operation from one size to another, both included.
struct SizeRange {
  std::int64_t from = 0;
  std::int64_t to = INT64_MAX;
  Choice route;
};

struct Chosen {
  std::vector<SizeRange> ranges;      ///< from 0 on without gaps; empty: the table says nothing
  Shape shape{};                       ///< of the rows it comes from
  DTypeClass dtype{};
  std::vector<const Cell*> cells{};    ///< those rows, by size
};

/// Says whether a comm can take a route.
using Usable = std::function<bool(const Choice&)>;

/// A function of the table and of what is asked, so equal on all ranks. Where the shape was not measured the nearest
/// one counts: by the ratio of hosts and of ranks per host, one host never for several nor the other way round. Where the
/// class of element types was not measured another one counts. Sends and receives get one range, for all sizes.
MEDLEY_API Chosen choose(const Table& table, Op op, Memory memory, DTypeClass dtype, Shape shape, const Usable& usable);

/// The cell whose size is nearest, by ratio; null if there is none.
MEDLEY_API const Cell* nearest_size(const std::vector<const Cell*>& cells, std::int64_t bytes) noexcept;

/// Up to which size the smaller of two neighbouring sizes counts: the middle, by ratio.
MEDLEY_API std::int64_t border(std::int64_t smaller, std::int64_t larger) noexcept;

}  // namespace medley::route
