// Which cells the tuner measures, and in which order. It depends only on the options and the table, so every rank
// plans the same.
#pragma once

#include <map>
#include <medley/medley.hpp>
#include <optional>
#include <set>
#include <vector>

#include "route/table.hpp"
#include "tune/tuner.hpp"

namespace medley::tune {

/// A sub-comm of the job with its shape. Where the hosts have equal numbers of ranks there are three kinds: all ranks,
/// the ranks of a host, and one rank of each host; the groups of a kind run concurrently, as they do in training.
struct ShapedComm {
  route::Shape shape;
  Comm comm;
};
std::vector<ShapedComm> shaped_comms_of(Comm& world, const std::vector<int>& hosts);

/// Of the shapes that a job has, those whose rows comms of the shapes asked for will use.
std::set<route::Shape> used_shapes(const std::vector<route::Shape>& have, const std::vector<route::Shape>& asked);

/// The element type a cell is measured with.
DType dtype_for(const route::Key& key, const TuneOptions& options);

/// Every cell that the table lacks or is unsure of, every other size first, so that even a short run covers the range
/// from the smallest to the largest.
std::vector<route::Key> first_look(const TuneOptions& options, const std::vector<route::Shape>& shapes,
                                   const route::Table& table);

/// Where more time helps most: a size between two adjacent ones with different routes, or the least certain cell.
/// None when everything is clear. Never a cell that had `most_rounds` of these measurements.
std::optional<route::Key> next_unclear_cell(const route::Table& table, const std::vector<route::Shape>& shapes,
                                            const TuneOptions& options, const std::map<route::Key, int>& rounds);
inline constexpr int most_rounds = 4;

/// The cell with the smallest lead that was not measured again: even a clear result may come from passing noise,
/// such as other work on the machine. None where all were repeated or lead by a factor of 2.
std::optional<route::Key> next_to_confirm(const route::Table& table, const std::vector<route::Key>& cells,
                                          const std::map<route::Key, int>& rounds);

/// Whether the route was five times slower than the best at the next smaller measured size: larger sizes within a
/// factor of 64 need not try it.
bool far_behind(const route::Table& table, const route::Key& key, const Choice& route);

/// Whether a cell needs no more time: its first route is surely the fastest, or the close ones count as equal.
bool is_clear(const route::Cell& cell);

}  // namespace medley::tune
