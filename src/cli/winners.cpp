#include "cli/winners.hpp"

#include <fmt/format.h>

#include <set>

#include "cli/sizes.hpp"
#include "cli/table.hpp"
#include "route/choose.hpp"

namespace medley::cli {
namespace {

std::string size_of_border(std::int64_t bytes) {
  return bytes == INT64_MAX ? "on" : size_text(static_cast<std::size_t>(bytes));
}

/// By how much the route beats the fastest of another backend in the rows it holds; empty without another backend.
std::string against_others(const route::Chosen& chosen, const route::SizeRange& range) {
  double most = 0;
  std::string whom;
  for (const route::Cell* cell : chosen.cells) {
    const route::Timing* taken = cell->find(range.route);
    if (!taken || cell->key.bytes < range.from || cell->key.bytes > range.to) continue;
    for (const route::Timing& other : cell->routes) {
      if (other.route.backend == range.route.backend && other.route.algorithm == range.route.algorithm) continue;
      const double ratio = other.median_us / taken->median_us;
      if (ratio > most) most = ratio, whom = other.route.backend + "/" + other.route.algorithm;
      break;   // the fastest of the others
    }
  }
  return whom.empty() ? "" : fmt::format("{:.2f}x {}", most, whom);
}

}  // namespace

std::string winners_text(const route::Table& table) {
  std::set<std::tuple<route::Shape, Memory, Op, route::DTypeClass>> asked;
  for (const route::Cell& cell : table.cells()) asked.insert({cell.key.shape, cell.key.memory, cell.key.op, cell.key.dtype});
  Table lines({"shape", "memory", "op", "dtype", "from", "to", "route", "ahead of the next by up to"});
  for (const auto& [shape, memory, op, dtype] : asked) {
    const route::Chosen chosen = route::choose(table, op, memory, dtype, shape, [](const Choice&) { return true; });
    for (const route::SizeRange& range : chosen.ranges) {
      lines.add({fmt::format("{} x {}", shape.hosts, shape.ranks_per_host), std::string(name(memory)), std::string(name(op)),
                 std::string(name(dtype)), size_of_border(range.from), size_of_border(range.to),
                 range.route.backend + "/" + range.route.algorithm, against_others(chosen, range)});
    }
  }
  return lines.str();
}

}  // namespace medley::cli
