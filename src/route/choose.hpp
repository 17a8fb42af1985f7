// From measured cells to routes by size: which rows apply to a comm, at which size one route replaces another, and how
// near-equal routes are kept from alternating. Used when a comm is created, and by `medley explain`.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "compress/spec.hpp"
#include "route/table.hpp"

namespace medley::route {

// A route within this of the best at a size counts as equal there: below the measurement's resolution, and below the 5
// % or 0.2 µs that `auto` may lose to the best.
inline constexpr double near_ratio = 1.03;
inline constexpr double near_us = 0.1;
/// The assumed ratio for a route missing from a row: it was so slow that it was not measured.
inline constexpr double absent_ratio = 5;
/// Up to this ratio, two routes also count as equal if the confidence intervals of their medians overlap.
inline constexpr double tie_ratio = 1.06;
/// The loss accepted to avoid the size exchange of v-collectives, which costs two of every sixteen operations together
/// about the time of a small one (engine/size_agreement.hpp).
inline constexpr double size_exchange_us = 0.2;
inline constexpr double size_exchange_ratio = 1.05;

/// Below, starting two operations costs more than dividing one can save: tune measures no split there, and none is
/// chosen.
inline constexpr std::int64_t least_split_bytes = 1 << 20;

/// The route of an operation for a range of sizes, both ends inclusive.
struct SizeRange {
  std::int64_t from = 0;
  std::int64_t to = INT64_MAX;
  Choice route;
};

struct MEDLEY_API Chosen {
  std::vector<SizeRange> ranges;  ///< from 0 on without gaps; empty: the table has no rows
  Shape shape{};                  ///< of the rows used
  DTypeClass dtype{};
  std::vector<const Cell*> cells{};  ///< those rows, by size
  bool by_step = false;              ///< the ranges are those of the step that the table was tuned for
  /// The range that holds this size; null if there is none.
  const SizeRange* at(std::int64_t bytes) const noexcept;
};

/// Whether a comm can take a route.
using Usable = std::function<bool(const Choice&)>;
/// For tables that are read without a comm.
inline bool any_route(const Choice&) { return true; }

/// A pure function of its arguments, so equal on all ranks. For a shape that was not measured it uses the nearest one,
/// by the ratio of hosts and of ranks per host, but never one host for several or the reverse. For a class of element
/// types that was not measured it uses another. Sends and receives get one range for all sizes, unless both ends know
/// the size (`exact`). Compressed routes are left out unless they are permitted.
/// A table that was tuned for a step gives that step's routes first; if these all name one library, every operation
/// takes it, and otherwise operations that the step does not have take the best route among the backends that it has.
MEDLEY_API Chosen choose(const Table& table, Op op, Memory memory, DTypeClass dtype, Shape shape, const Usable& usable,
                         const compress::Permission& permission = {}, bool exact = false);

/// Of these shapes the nearest one: the one whose rows a comm of the wanted shape uses. Null if none is of its kind.
MEDLEY_API const Shape* nearest(const std::vector<Shape>& shapes, const Shape& wanted) noexcept;

/// The cell whose size is nearest, by ratio; null if there is none.
MEDLEY_API const Cell* nearest_size(const std::vector<const Cell*>& cells, std::int64_t bytes) noexcept;

/// The size up to which the smaller of two adjacent sizes applies: their geometric mean.
MEDLEY_API std::int64_t border(std::int64_t smaller, std::int64_t larger) noexcept;

}  // namespace medley::route
