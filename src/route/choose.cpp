#include "route/choose.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/v_collectives.hpp"
#include "route/home.hpp"
#include "route/pair_name.hpp"

namespace medley::route {
namespace {

double distance(const Shape& a, const Shape& b) {
  return std::abs(std::log2(static_cast<double>(a.hosts) / b.hosts)) +
         std::abs(std::log2(static_cast<double>(a.ranks_per_host) / b.ranks_per_host));
}

bool same_kind(const Shape& a, const Shape& b) { return (a.hosts == 1) == (b.hosts == 1); }

/// Which classes of element types stand in for one, the nearest first.
std::array<DTypeClass, 3> stand_ins(DTypeClass dtype) {
  switch (dtype) {
    case DTypeClass::half: return {DTypeClass::half, DTypeClass::floating, DTypeClass::integer};
    case DTypeClass::integer: return {DTypeClass::integer, DTypeClass::floating, DTypeClass::half};
    default: return {dtype, DTypeClass::half, DTypeClass::integer};
  }
}

/// The nearest shape with a row, if any.
std::optional<Shape> nearest_shape(const Table& table, Op op, Memory memory, DTypeClass dtype, const Shape& wanted) {
  std::optional<Shape> best;
  for (const Cell& cell : table.cells()) {
    const Key& key = cell.key;
    if (key.op != op || key.memory != memory || key.dtype != dtype || !same_kind(key.shape, wanted)) continue;
    if (!best || distance(key.shape, wanted) < distance(*best, wanted)) best = key.shape;
  }
  return best;
}

/// One size with the routes a comm can take.
struct Rung {
  std::int64_t bytes;
  std::vector<const Timing*> routes;   ///< fastest first

  const Timing* find(const Choice& route) const {
    for (const Timing* timing : routes) {
      if (timing->route.backend == route.backend && timing->route.algorithm == route.algorithm) return timing;
    }
    return nullptr;
  }
  /// What is not told apart hardly counts: one disturbed row must not decide for all sizes.
  double loss(const Choice& route) const {
    const Timing* timing = find(route);
    if (!timing) return std::log(absent_ratio);
    const double by_median = std::log(timing->median_us / routes.front()->median_us);
    return told_apart(*timing) ? by_median : by_median / 10;
  }
  bool near_best(const Choice& route) const {
    const Timing* timing = find(route);
    const double best = routes.front()->median_us;
    if (!timing) return false;
    const bool tie = !told_apart(*timing) && timing->median_us <= best * tie_ratio;
    return tie || timing->median_us <= best * near_ratio || timing->median_us <= best + near_us;
  }

 private:
  bool told_apart(const Timing& timing) const { return timing.low_us > routes.front()->high_us; }
};

/// Of the candidates, the one that loses least to the best over some rungs.
const Choice* least_loss(const std::vector<const Choice*>& candidates, const Rung* begin, const Rung* end) {
  const Choice* best = nullptr;
  double least = INFINITY;
  for (const Choice* candidate : candidates) {
    double loss = 0;
    for (const Rung* rung = begin; rung != end; ++rung) loss += rung->loss(*candidate);
    if (!best || loss < least) best = candidate, least = loss;
  }
  return best;
}

/// Of the candidates those of the comm's own library, if there are such.
std::vector<const Choice*> at_home(std::vector<const Choice*> candidates, Home& home) {
  const auto is_of = [](std::string_view library) {
    return [library](const Choice* route) { return between_of(route->backend) == library; };
  };
  if (std::all_of(candidates.begin(), candidates.end(), is_of(between_of(candidates.front()->backend)))) return candidates;
  const auto others = std::stable_partition(candidates.begin(), candidates.end(), is_of(home.library()));
  if (others != candidates.begin()) candidates.erase(others, candidates.end());
  return candidates;
}

/// The fewest stretches in which one route is near the best at every size: each goes on as long as some route is.
std::vector<Stretch> join(const std::vector<Rung>& rungs, Home& home) {
  std::vector<Stretch> stretches;
  for (std::size_t begin = 0; begin < rungs.size();) {
    std::vector<const Choice*> candidates;
    for (const Timing* timing : rungs[begin].routes) {
      if (rungs[begin].near_best(timing->route)) candidates.push_back(&timing->route);
    }
    std::size_t end = begin + 1;
    for (; end < rungs.size(); ++end) {
      std::vector<const Choice*> left;
      std::copy_if(candidates.begin(), candidates.end(), std::back_inserter(left),
                   [&](const Choice* route) { return rungs[end].near_best(*route); });
      if (left.empty()) break;
      candidates = std::move(left);
    }
    const Choice* route = least_loss(at_home(std::move(candidates), home), rungs.data() + begin, rungs.data() + end);
    const std::int64_t from = stretches.empty() ? 0 : stretches.back().to + 1;
    const std::int64_t to = end == rungs.size() ? INT64_MAX : border(rungs[end - 1].bytes, rungs[end].bytes);
    if (!stretches.empty() && stretches.back().route.backend == route->backend &&
        stretches.back().route.algorithm == route->algorithm) {
      stretches.back().to = to;
    } else {
      stretches.push_back({from, to, *route});
    }
    begin = end;
  }
  return stretches;
}

/// Ranks that know different counts must tell each other how large an operation is before sizes can decide its route; one
/// route for all sizes that is nearly as good everywhere saves that.
const Choice* will_do_for_all(const std::vector<Rung>& rungs) {
  std::vector<const Choice*> good;
  for (const Timing* timing : rungs.front().routes) {
    const auto nearly_as_good = [&](const Rung& rung) {
      const Timing* here = rung.find(timing->route);
      const double best = rung.routes.front()->median_us;
      return here && (here->median_us <= best * telling_ratio || here->median_us <= best + telling_us);
    };
    if (std::all_of(rungs.begin(), rungs.end(), nearly_as_good)) good.push_back(&timing->route);
  }
  return good.empty() ? nullptr : least_loss(good, rungs.data(), rungs.data() + rungs.size());
}

/// One route for all sizes: a receive may be larger than what is sent to it, so sizes must not decide.
std::vector<Stretch> one_for_all(const std::vector<Rung>& rungs) {
  std::vector<const Choice*> candidates;
  for (const Rung& rung : rungs) {
    for (const Timing* timing : rung.routes) candidates.push_back(&timing->route);
  }
  return {{0, INT64_MAX, *least_loss(candidates, rungs.data(), rungs.data() + rungs.size())}};
}

}  // namespace

std::int64_t border(std::int64_t smaller, std::int64_t larger) noexcept {
  const double middle = std::sqrt(static_cast<double>(std::max<std::int64_t>(smaller, 1)) * static_cast<double>(larger));
  return std::clamp(static_cast<std::int64_t>(middle), smaller, larger - 1);
}

Chosen choose(const Table& table, Op op, Memory memory, DTypeClass dtype, Shape shape, const Usable& usable) {
  Chosen chosen;
  if (op == Op::recv) op = Op::send;
  std::optional<Shape> nearest;
  for (const DTypeClass candidate : stand_ins(dtype)) {
    chosen.dtype = candidate;
    if ((nearest = nearest_shape(table, op, memory, candidate, shape))) break;
  }
  if (!nearest) return chosen;
  chosen.shape = *nearest;
  std::vector<Rung> rungs;
  for (const Cell& cell : table.cells()) {
    const Key& key = cell.key;
    if (key.op != op || key.memory != memory || key.dtype != chosen.dtype || key.shape != *nearest) continue;
    Rung rung{key.bytes, {}};
    for (const Timing& timing : cell.routes) {
      if (usable(timing.route)) rung.routes.push_back(&timing);
    }
    chosen.cells.push_back(&cell);
    if (!rung.routes.empty()) rungs.push_back(std::move(rung));
  }
  if (rungs.empty()) return chosen;
  const Choice* one = core::is_uneven(op) ? will_do_for_all(rungs) : nullptr;
  if (one) {
    chosen.stretches = {{0, INT64_MAX, *one}};
  } else {
    Home home(table, memory, *nearest, usable);
    chosen.stretches = is_collective(op) ? join(rungs, home) : one_for_all(rungs);
  }
  return chosen;
}

const Cell* nearest_size(const std::vector<const Cell*>& cells, std::int64_t bytes) noexcept {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i + 1 == cells.size() || bytes <= border(cells[i]->key.bytes, cells[i + 1]->key.bytes)) return cells[i];
  }
  return nullptr;
}

}  // namespace medley::route
