#include "nccl_tuner/comm_routes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "route/choose.hpp"

namespace medley::nccl_tuner {

CommRoutes::CommRoutes(const route::Table& table, int ranks, int nodes) {
  const route::Shape shape{std::max(nodes, 1), (ranks + std::max(nodes, 1) - 1) / std::max(nodes, 1)};
  for (const Op op : tuned_ops) {
    // NCCL does not tell the element type; training reduces in f32 and bf16, for which NCCL's algorithms rank alike.
    const route::DTypeClass dtype = reduces(op) ? route::DTypeClass::floating : route::DTypeClass::any;
    const route::Chosen chosen = route::choose(table, op, Memory::cuda, dtype, shape,
                                               [](const Choice& route) { return route.backend == "nccl"; });
    Routes routes{op, chosen.shape, {}};
    for (const route::SizeRange& range : chosen.ranges)
      routes.ranges.push_back({range.to, route::parse_nccl_algorithm(range.route.algorithm)});
    const bool says_something = std::any_of(routes.ranges.begin(), routes.ranges.end(),
                                            [](const Range& range) { return range.algorithm.has_value(); });
    if (says_something) routes_.push_back(std::move(routes));
  }
}

std::optional<route::NcclAlgorithm> CommRoutes::find(Op op, std::int64_t bytes) const noexcept {
  for (const Routes& routes : routes_) {
    if (routes.op != op) continue;
    for (const Range& range : routes.ranges) {
      if (bytes <= range.to) return range.algorithm;
    }
  }
  return {};
}

std::string CommRoutes::text() const {
  std::vector<std::string> parts;
  for (const Routes& routes : routes_)
    parts.push_back(fmt::format("{} of {}", medley::name(routes.op), route::text(routes.shape)));
  return parts.empty() ? "no row of NCCL's algorithms, so NCCL decides"
                       : fmt::format("rows of {}", fmt::join(parts, ", "));
}

}  // namespace medley::nccl_tuner
