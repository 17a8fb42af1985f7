#include "tune/plan_cells.hpp"

#include <algorithm>
#include <bit>

#include "route/choose.hpp"
#include "tune/job_clock.hpp"
#include "tune/race.hpp"
#include "tune/sizes.hpp"

namespace medley::tune {
namespace {

constexpr double sure = 0.95;

bool asked_for(const route::Key& key, const std::vector<route::Shape>& shapes, const TuneOptions& options) {
  return std::find(shapes.begin(), shapes.end(), key.shape) != shapes.end() &&
         std::find(options.ops.begin(), options.ops.end(), key.op) != options.ops.end() && key.memory == options.memory;
}

/// Whether the keys differ only in size.
bool neighbours(const route::Key& a, route::Key b) {
  b.bytes = a.bytes;
  return a == b;
}

// Trying every route with 64 MiB takes ten seconds; with a thirty-second of that size it takes a third of a second and
// excludes most far_behind routes (far_behind).
constexpr std::int64_t large = 1 << 20, scout_part = 32;

/// The smallest first, each after a smaller one that shows which routes need not be tried.
std::vector<NeededOperation> with_scouts(std::vector<NeededOperation> needed) {
  std::stable_sort(needed.begin(), needed.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  std::vector<NeededOperation> out;
  for (const NeededOperation& next : needed) {
    const bool alone = std::none_of(out.begin(), out.end(), [&](const NeededOperation& before) {
      return before.op == next.op && route::class_of(next.op, before.dtype) == route::class_of(next.op, next.dtype) &&
             before.bytes >= next.bytes / scout_part;
    });
    if (alone && next.bytes > large) out.push_back({next.op, next.dtype, next.bytes / scout_part});
    out.push_back(next);
  }
  return out;
}

/// A size between two adjacent ones whose routes differ by more than counts as equal; none when they are within a
/// factor of 2.
std::optional<route::Key> between(const route::Cell& smaller, const route::Cell& larger) {
  if (!neighbours(smaller.key, larger.key) || larger.key.bytes <= 2 * std::max<std::int64_t>(smaller.key.bytes, 1))
    return {};
  const route::Timing* kept = larger.find(smaller.routes.front().route);
  if (kept && kept->median_us <= larger.routes.front().median_us * route::near_ratio) return {};
  route::Key key = smaller.key;
  key.bytes = static_cast<std::int64_t>(
      std::bit_floor(static_cast<std::uint64_t>(route::border(smaller.key.bytes, larger.key.bytes))));
  if (key.bytes <= smaller.key.bytes) return {};
  return key;
}

}  // namespace

std::vector<ShapedComm> shaped_comms_of(Comm& world, const std::vector<int>& hosts) {
  const route::Shape whole = route::shape_of(hosts);
  std::vector<ShapedComm> groups{{whole, world}};
  const bool even = whole.hosts * whole.ranks_per_host == world.size();
  if (!even || whole.hosts == 1 || whole.ranks_per_host == 1) return groups;
  const int own = hosts[static_cast<std::size_t>(world.rank())];
  const auto place = static_cast<int>(std::count(hosts.begin(), hosts.begin() + world.rank(), own));
  groups.push_back({{1, whole.ranks_per_host}, world.split(own, world.rank())});
  groups.push_back({{whole.hosts, 1}, world.split(place, world.rank())});
  return groups;
}

std::set<route::Shape> used_shapes(const std::vector<route::Shape>& have, const std::vector<route::Shape>& asked) {
  std::set<route::Shape> used;
  for (const route::Shape& shape : asked) {
    if (const route::Shape* const found = route::nearest(have, shape)) used.insert(*found);
  }
  return used;
}

DType dtype_for(const route::Key& key, const TuneOptions& options) {
  for (const DType dtype : options.dtypes) {
    if (key.dtype == route::DTypeClass::any || route::class_of(key.op, dtype) == key.dtype) return dtype;
  }
  return DType::f32;
}

std::vector<route::Key> first_look(const TuneOptions& options, const std::vector<route::Shape>& shapes,
                                   const route::Table& table) {
  std::vector<route::Key> keys;
  const auto add = [&](const route::Shape& shape, Op op, DType of, std::size_t bytes) {
    route::Key key{.op = op, .memory = options.memory, .dtype = route::class_of(op, of), .shape = shape};
    const int ranks = shape.hosts * shape.ranks_per_host;
    const DType dtype = dtype_for(key, options);
    key.bytes = static_cast<std::int64_t>(elements_of(op, bytes, size_of(dtype), ranks) * size_of(dtype));
    const route::Cell* known = table.find(key);
    if (known && is_clear(*known)) return;
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  };
  for (const route::Shape& shape : shapes) {
    for (const NeededOperation& needed : with_scouts(options.exactly))
      add(shape, needed.op, needed.dtype, static_cast<std::size_t>(needed.bytes));
  }
  if (!options.exactly.empty()) return keys;
  for (const std::size_t step : {4u, 2u, 1u}) {  // all operations at few sizes first: time may be short
    for (const route::Shape& shape : shapes) {
      for (const Op op : options.ops) {
        for (std::size_t i = 0; i < options.sizes.size(); i += step) {
          for (std::size_t d = 0; d < (reduces(op) ? options.dtypes.size() : 1); ++d)
            add(shape, op, options.dtypes[d], options.sizes[i]);
        }
      }
    }
  }
  return keys;
}

bool is_clear(const route::Cell& cell) {
  if (cell.confidence >= sure) return true;
  const route::Timing& first = cell.routes.front();
  for (std::size_t i = 1; i < cell.routes.size(); ++i) {
    const route::Timing& other = cell.routes[i];
    const bool equal =
        std::min(first.samples, other.samples) >= Race::plenty &&
        (other.median_us <= first.median_us * route::near_ratio || other.median_us <= first.median_us + route::near_us);
    if (!equal && confidence_of(first, other) < sure) return false;
  }
  return true;
}

std::optional<route::Key> next_unclear_cell(const route::Table& table, const std::vector<route::Shape>& shapes,
                                            const TuneOptions& options, const std::map<route::Key, int>& rounds) {
  const auto may_measure = [&](const route::Key& key) {
    const auto found = rounds.find(key);
    return asked_for(key, shapes, options) && (found == rounds.end() || found->second < most_rounds);
  };
  const std::vector<route::Cell>& cells = table.cells();
  for (std::size_t i = 1; i < cells.size() && options.exactly.empty(); ++i) {
    const auto middle = between(cells[i - 1], cells[i]);
    if (middle && may_measure(*middle) && !table.find(*middle)) return middle;
  }
  const route::Cell* least = nullptr;
  for (const route::Cell& cell : cells) {
    if (!may_measure(cell.key) || is_clear(cell)) continue;
    if (!least || cell.confidence < least->confidence) least = &cell;
  }
  return least ? std::optional(least->key) : std::nullopt;
}

std::optional<route::Key> next_to_confirm(const route::Table& table, const std::vector<route::Key>& cells,
                                          const std::map<route::Key, int>& rounds) {
  double least = 2;
  std::optional<route::Key> found;
  for (const route::Key& key : cells) {
    const route::Cell* cell = table.find(key);
    if (!cell || cell->routes.size() < 2 || rounds.contains(key)) continue;
    const double lead = cell->routes[1].median_us / cell->routes[0].median_us;
    if (lead < least) found = key, least = lead;
  }
  return found;
}

bool far_behind(const route::Table& table, const route::Key& key, const Choice& route) {
  // At the nearest smaller size that has the route: if it was far behind there, it is not measured
  bool behind = false;
  for (const route::Cell& cell : table.cells()) {
    if (!neighbours(cell.key, key) || cell.key.bytes >= key.bytes || cell.key.bytes * 64 < key.bytes) continue;
    if (const route::Timing* known = cell.find(route)) behind = known->median_us > 5 * cell.routes.front().median_us;
  }
  return behind;
}

}  // namespace medley::tune
