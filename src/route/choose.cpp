#include "route/choose.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <optional>

#include "base/v_collectives.hpp"
#include "route/pair_name.hpp"
#include "route/preferred_library.hpp"

namespace medley::route {
namespace {

double distance(const Shape& a, const Shape& b) {
  return std::abs(std::log2(static_cast<double>(a.hosts) / b.hosts)) +
         std::abs(std::log2(static_cast<double>(a.ranks_per_host) / b.ranks_per_host));
}

bool same_kind(const Shape& a, const Shape& b) { return (a.hosts == 1) == (b.hosts == 1); }

/// Which classes of element types may substitute for one, the nearest first.
std::array<DTypeClass, 3> stand_ins(DTypeClass dtype) {
  switch (dtype) {
    case DTypeClass::half: return {DTypeClass::half, DTypeClass::floating, DTypeClass::integer};
    case DTypeClass::integer: return {DTypeClass::integer, DTypeClass::floating, DTypeClass::half};
    default: return {dtype, DTypeClass::half, DTypeClass::integer};
  }
}

/// The nearest measured shape, if any.
std::optional<Shape> nearest_shape(const Table& table, Op op, Memory memory, DTypeClass dtype, const Shape& wanted) {
  std::vector<Shape> measured;
  for (const Cell& cell : table.cells()) {
    const Key& key = cell.key;
    if (key.op == op && key.memory == memory && key.dtype == dtype) measured.push_back(key.shape);
  }
  const Shape* const best = nearest(measured, wanted);
  return best ? std::optional(*best) : std::nullopt;
}

/// One size (size bucket) with the routes a comm can take.
struct SizeBucket {
  std::int64_t bytes;
  std::vector<const Timing*> routes;  ///< fastest first

  const Timing* find(const Choice& route) const {
    for (const Timing* timing : routes) {
      if (timing->route == route) return timing;
    }
    return nullptr;
  }
  /// Differences within the noise hardly count: one disturbed row must not decide for all sizes.
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

/// A split keeps two libraries busy, which other operations may want meanwhile. It is taken only where it is surely
/// faster than the best route over one library.
void drop_uncertain_splits(SizeBucket& bucket) {
  const auto single = std::find_if(bucket.routes.begin(), bucket.routes.end(),
                                   [](const Timing* timing) { return !is_split(timing->route.backend); });
  if (single == bucket.routes.end()) return;
  const double best = (*single)->low_us;
  std::erase_if(bucket.routes,
                [&](const Timing* timing) { return is_split(timing->route.backend) && timing->high_us >= best; });
}

/// Where only large sizes were measured, small ones take the best route over one library.
void keep_splits_to_large_tensors(std::vector<SizeRange>& ranges, const SizeBucket& smallest) {
  SizeRange& first = ranges.front();
  if (!is_split(first.route.backend) || first.to < least_split_bytes) return;
  const auto single = std::find_if(smallest.routes.begin(), smallest.routes.end(),
                                   [](const Timing* one) { return !is_split(one->route.backend); });
  if (single == smallest.routes.end()) return;
  first.from = least_split_bytes;
  ranges.insert(ranges.begin(), {0, least_split_bytes - 1, (*single)->route});
}

/// The candidate that loses least to the best over a range of sizes.
const Choice* least_loss(const std::vector<const Choice*>& candidates, const SizeBucket* begin, const SizeBucket* end) {
  const Choice* best = nullptr;
  double least = INFINITY;
  for (const Choice* candidate : candidates) {
    double loss = 0;
    for (const SizeBucket* bucket = begin; bucket != end; ++bucket) loss += bucket->loss(*candidate);
    if (!best || loss < least) best = candidate, least = loss;
  }
  return best;
}

/// The candidates of the comm's preferred library, or all if it has none.
std::vector<const Choice*> of_preferred_library(std::vector<const Choice*> candidates, PreferredLibrary& preferred) {
  const auto is_of = [](std::string_view library) {
    return [library](const Choice* route) { return between_of(route->backend) == library; };
  };
  if (std::all_of(candidates.begin(), candidates.end(), is_of(between_of(candidates.front()->backend))))
    return candidates;
  const auto others = std::stable_partition(candidates.begin(), candidates.end(), is_of(preferred.library()));
  if (others != candidates.begin()) candidates.erase(others, candidates.end());
  return candidates;
}

/// The fewest size ranges in which one route is near the best at every size: each is extended as long as one is.
std::vector<SizeRange> join(const std::vector<SizeBucket>& buckets, PreferredLibrary& preferred) {
  std::vector<SizeRange> ranges;
  for (std::size_t begin = 0; begin < buckets.size();) {
    std::vector<const Choice*> candidates;
    for (const Timing* timing : buckets[begin].routes) {
      if (buckets[begin].near_best(timing->route)) candidates.push_back(&timing->route);
    }
    std::size_t end = begin + 1;
    for (; end < buckets.size(); ++end) {
      std::vector<const Choice*> left;
      std::copy_if(candidates.begin(), candidates.end(), std::back_inserter(left),
                   [&](const Choice* route) { return buckets[end].near_best(*route); });
      if (left.empty()) break;
      candidates = std::move(left);
    }
    const Choice* route = least_loss(of_preferred_library(std::move(candidates), preferred), buckets.data() + begin,
                                     buckets.data() + end);
    const std::int64_t from = ranges.empty() ? 0 : ranges.back().to + 1;
    const std::int64_t to = end == buckets.size() ? INT64_MAX : border(buckets[end - 1].bytes, buckets[end].bytes);
    if (!ranges.empty() && ranges.back().route == *route) {
      ranges.back().to = to;
    } else {
      ranges.push_back({from, to, *route});
    }
    begin = end;
  }
  return ranges;
}

/// Ranks that know different counts must exchange sizes before a size can decide the route; a single
/// route that is nearly as good at all sizes avoids that.
const Choice* will_do_for_all(const std::vector<SizeBucket>& buckets) {
  std::vector<const Choice*> good;
  for (const Timing* timing : buckets.front().routes) {
    const auto nearly_as_good = [&](const SizeBucket& bucket) {
      const Timing* here = bucket.find(timing->route);
      const double best = bucket.routes.front()->median_us;
      return here && (here->median_us <= best * size_exchange_ratio || here->median_us <= best + size_exchange_us);
    };
    if (std::all_of(buckets.begin(), buckets.end(), nearly_as_good)) good.push_back(&timing->route);
  }
  return good.empty() ? nullptr : least_loss(good, buckets.data(), buckets.data() + buckets.size());
}

/// One route for all sizes: a receive buffer may be larger than its message, so sizes must not decide.
std::vector<SizeRange> one_for_all(const std::vector<SizeBucket>& buckets) {
  std::vector<const Choice*> candidates;
  for (const SizeBucket& bucket : buckets) {
    for (const Timing* timing : bucket.routes) candidates.push_back(&timing->route);
  }
  return {{0, INT64_MAX, *least_loss(candidates, buckets.data(), buckets.data() + buckets.size())}};
}

}  // namespace

const Shape* nearest(const std::vector<Shape>& shapes, const Shape& wanted) noexcept {
  const Shape* best = nullptr;
  for (const Shape& shape : shapes) {
    if (same_kind(shape, wanted) && (!best || distance(shape, wanted) < distance(*best, wanted))) best = &shape;
  }
  return best;
}

std::int64_t border(std::int64_t smaller, std::int64_t larger) noexcept {
  const double middle =
      std::sqrt(static_cast<double>(std::max<std::int64_t>(smaller, 1)) * static_cast<double>(larger));
  return std::clamp(static_cast<std::int64_t>(middle), smaller, larger - 1);
}

namespace {

/// The route, or where a comm of this shape cannot take a pair, that half of the pair which serves it; none: neither.
std::optional<Choice> as_taken(const Choice& route, const Shape& shape, const Usable& usable) {
  if (usable(route)) return route;
  Choice half{std::string(backend_on(shape, route.backend, false)), "native"};
  return is_pair(route.backend) && usable(half) ? std::optional(std::move(half)) : std::nullopt;
}

/// The ranges of the step's routes for an operation; none if it does not have it or the comm cannot take one of them.
std::vector<SizeRange> ranges_of_step(const TunedStep& step, Op op, DTypeClass dtype, const Shape& shape,
                                      const Usable& usable, Chosen& chosen) {
  for (const DTypeClass candidate : stand_ins(dtype)) {
    std::vector<Shape> tuned;
    for (const StepRoute& route : step.routes) {
      if (route.op == op && route.dtype == candidate) tuned.push_back(route.shape);
    }
    const Shape* const found = nearest(tuned, shape);
    if (!found) continue;
    std::vector<SizeRange> ranges;
    for (const StepRoute& route : step.routes) {
      if (route.op != op || route.dtype != candidate || route.shape != *found) continue;
      std::optional<Choice> taken = as_taken(route.route, shape, usable);
      if (!taken) return {};
      ranges.push_back({route.from, route.to, std::move(*taken)});
    }
    chosen.shape = *found, chosen.dtype = candidate;
    return ranges;
  }
  return {};
}

/// Where the step's routes all name one library: that library, for every other operation too.
std::vector<SizeRange> library_of_step(const TunedStep& step, const Shape& shape, const Usable& usable) {
  if (step.library.empty()) return {};
  std::optional<Choice> whole = as_taken({step.library, "native"}, shape, usable);
  if (!whole) return {};
  return {{0, INT64_MAX, std::move(*whole)}};
}

/// What a route costs the operations of other libraries counts as its own time.
const Timing* charge_for_mixing(const Timing& timing, double us, std::deque<Timing>& charged) {
  if (us <= 0) return &timing;
  charged.push_back({timing.route, timing.median_us + us, timing.low_us + us, timing.high_us + us, timing.samples});
  return &charged.back();
}

Chosen choose_by_cells(const Table& table, Op op, Memory memory, DTypeClass dtype, Shape shape, const Usable& usable,
                       bool exact) {
  Chosen chosen;
  std::optional<Shape> found;
  for (const DTypeClass candidate : stand_ins(dtype)) {
    chosen.dtype = candidate;
    if ((found = nearest_shape(table, op, memory, candidate, shape))) break;
  }
  if (!found) return chosen;
  chosen.shape = *found;
  std::vector<SizeBucket> buckets;
  std::deque<Timing> charged;  // a deque: pointers stay valid
  for (const Cell& cell : table.cells()) {
    const Key& key = cell.key;
    if (key.op != op || key.memory != memory || key.dtype != chosen.dtype || key.shape != chosen.shape) continue;
    SizeBucket bucket{key.bytes, {}};
    for (const Timing& timing : cell.routes) {
      if (usable(timing.route))
        bucket.routes.push_back(
            charge_for_mixing(timing, table.mixing_us(memory, chosen.shape, timing.route.backend), charged));
    }
    std::stable_sort(bucket.routes.begin(), bucket.routes.end(),
                     [](const Timing* a, const Timing* b) { return a->median_us < b->median_us; });
    drop_uncertain_splits(bucket);
    chosen.cells.push_back(&cell);
    if (!bucket.routes.empty()) buckets.push_back(std::move(bucket));
  }
  if (buckets.empty()) return chosen;
  const Choice* one = core::has_local_counts(op) ? will_do_for_all(buckets) : nullptr;
  if (one) {
    chosen.ranges = {{0, INT64_MAX, *one}};
  } else {
    PreferredLibrary preferred(table, memory, chosen.shape, usable);
    chosen.ranges = is_collective(op) || exact ? join(buckets, preferred) : one_for_all(buckets);
    keep_splits_to_large_tensors(chosen.ranges, buckets.front());
  }
  return chosen;
}

}  // namespace

const SizeRange* Chosen::at(std::int64_t bytes) const noexcept {
  const auto found = std::find_if(ranges.begin(), ranges.end(),
                                  [bytes](const SizeRange& range) { return bytes >= range.from && bytes <= range.to; });
  return found == ranges.end() ? nullptr : &*found;
}

Chosen choose(const Table& table, Op op, Memory memory, DTypeClass dtype, Shape shape, const Usable& possible,
              const compress::Permission& permission, bool exact) {
  const Usable usable = [&](const Choice& route) {
    return (!compress::is_compressed(route.algorithm) || compress::allows(permission, route.algorithm)) &&
           possible(route);
  };
  op = routed_as(op);
  if (!table.step || table.step->memory != memory)
    return choose_by_cells(table, op, memory, dtype, shape, usable, exact);
  const TunedStep& step = *table.step;
  const std::set<std::string> backends = step.backends();
  // Another library for an operation outside the step would have to be opened, and polled beside those of the step.
  const auto of_step = [&](const Choice& choice) { return backends.contains(choice.backend) && usable(choice); };
  Chosen chosen = choose_by_cells(table, op, memory, dtype, shape, of_step, exact);
  std::vector<SizeRange> ranges = ranges_of_step(step, op, dtype, shape, usable, chosen);
  if (ranges.empty()) {
    ranges = library_of_step(step, shape, usable);
    if (!ranges.empty()) chosen.shape = shape, chosen.dtype = dtype;
  }
  if (!ranges.empty()) {
    chosen.ranges = std::move(ranges);
    chosen.by_step = true;
  } else if (chosen.ranges.empty()) {
    chosen = choose_by_cells(table, op, memory, dtype, shape, usable, exact);
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
