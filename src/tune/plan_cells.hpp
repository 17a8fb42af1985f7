// Which cells the tuner visits, and in which order. All of it depends only on the options and the table, so every rank
// plans the same.
#pragma once

#include <map>
#include <medley/medley.hpp>
#include <optional>
#include <vector>

#include "route/table.hpp"
#include "tune/tuner.hpp"

namespace medley::tune {

/// A part of the job with its shape. Where the hosts divide the ranks evenly there are three: all, the ranks of a host, and
/// one rank of each host; the groups of a kind run at the same time, as they do in training.
struct ShapedComm {
  route::Shape shape;
  Comm comm;
};
std::vector<ShapedComm> groups_of(Comm& world, const std::vector<int>& hosts);

/// The element type a cell is measured with.
DType dtype_for(const route::Key& key, const TuneOptions& options);

/// Every cell that the table lacks or is not sure of, every other size first, so that a short time already reaches from
/// the smallest to the largest.
std::vector<route::Key> first_look(const TuneOptions& options, const std::vector<route::Shape>& shapes, const route::Table& table);

/// Where more time tells most: a size between two neighbours that take different routes, or the cell that is least sure.
/// None when everything is clear. No cell is named that was visited `most_visits` times.
std::optional<route::Key> where_it_is_close(const route::Table& table, const std::vector<route::Shape>& shapes,
                                            const TuneOptions& options, const std::map<route::Key, int>& visits);
inline constexpr int most_visits = 4;

/// Of these cells the one whose first leads by least and that was not visited again: one that looks clear may have been measured in
/// passing noise, such as other work on the machine. None where all are visited or lead by a factor of 2.
std::optional<route::Key> to_confirm(const route::Table& table, const std::vector<route::Key>& cells,
                                     const std::map<route::Key, int>& visits);

/// Whether the next smaller size that was measured has this route five times slower than the best: larger sizes within a
/// factor of 64 need not try it.
bool far_behind(const route::Table& table, const route::Key& key, const Choice& route);

/// Whether a cell needs no more time: its first is surely the fastest, or what comes close counts as equal.
bool is_clear(const route::Cell& cell);

}  // namespace medley::tune
