#include "replay/operation_times.hpp"

#include <algorithm>
#include <cmath>

#include "algorithms/registry.hpp"
#include "base/v_collectives.hpp"
#include "replay/places.hpp"
#include "route/pair_name.hpp"

namespace medley::replay {
namespace {

// Up to this factor beyond the largest measured size, time is assumed proportional to the size. Further on it may be
// several times that: 4 MiB fit into caches, 64 MiB do not (all_reduce of 2 ranks over shm: 0.44 and 13 ms).
constexpr std::int64_t most_beyond = 2;

/// A call that names only a backend uses the library's own algorithm, whatever is faster.
const route::Timing* native_of(const route::Cell& cell, const std::string& backend) {
  return cell.find({backend, std::string(algorithms::native)});
}

const route::Timing* chosen_of(const route::Cell& cell, const route::Chosen& chosen) {
  const route::SizeRange* const range = chosen.at(cell.key.bytes);
  return range ? cell.find(range->route) : nullptr;
}

}  // namespace

OperationTimes::OperationTimes(const route::Table& table, std::string backend, std::vector<std::string> usable,
                               Memory memory)
    : table_(table), backend_(std::move(backend)), usable_(std::move(usable)), memory_(memory) {}

OperationTimes::Curve OperationTimes::make_curve(const Kind& kind) const {
  const auto on_comm = [&kind](std::string_view backend) {
    return route::backend_on(kind.shape, backend, kind.in_blocks);
  };
  const auto usable = [&](const Choice& choice) {
    return on_comm(choice.backend) == choice.backend &&
           std::find(usable_.begin(), usable_.end(), choice.backend) != usable_.end();
  };
  const route::Chosen chosen = route::choose(table_, kind.op, memory_, kind.dtype, kind.shape, usable);
  Curve out;
  for (const route::Cell* cell : chosen.cells) {
    const route::Timing* timing =
        backend_.empty() ? chosen_of(*cell, chosen) : native_of(*cell, std::string(on_comm(backend_)));
    if (timing) out.push_back({cell->key.bytes, timing->median_us});
  }
  return out;
}

const OperationTimes::Curve& OperationTimes::curve(const Kind& kind) {
  const auto [at, fresh] = curves_.try_emplace(kind);
  if (fresh) at->second = make_curve(kind);
  return at->second;
}

std::optional<double> OperationTimes::us(Op op, DType dtype, std::int64_t bytes, const route::Shape& shape,
                                         bool in_blocks) {
  op = route::routed_as(op);
  const auto points_of = [&](Op one) { return &curve({one, route::class_of(one, dtype), shape, in_blocks}); };
  const Curve* points = points_of(op);
  if (points->empty()) points = points_of(core::equal_counts_form(op));
  if (points->empty()) return std::nullopt;
  const auto after = std::find_if(points->begin(), points->end(), [&](const Point& p) { return p.bytes >= bytes; });
  if (after == points->begin()) return after->us;  // below the smallest size only latency counts
  const Point& low = *(after - 1);
  if (after == points->end()) {
    if (bytes > most_beyond * low.bytes) return std::nullopt;
    return low.us * static_cast<double>(bytes) / static_cast<double>(std::max<std::int64_t>(1, low.bytes));
  }
  // Linear between two sizes: latency and bandwidth add up.
  const double share = static_cast<double>(bytes - low.bytes) / static_cast<double>(after->bytes - low.bytes);
  return low.us + share * (after->us - low.us);
}

}  // namespace medley::replay
