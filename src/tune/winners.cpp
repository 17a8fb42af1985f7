#include "tune/winners.hpp"

#include <set>
#include <tuple>

#include "route/choose.hpp"

namespace medley::tune {
namespace {

/// In the rows that it holds, against the fastest over another backend: algorithms of one library say little.
void compare_with_others(const route::Chosen& chosen, Winner& winner) {
  for (const route::Cell* cell : chosen.cells) {
    const route::Timing* taken = cell->find(winner.route);
    if (!taken || cell->key.bytes < winner.from || cell->key.bytes > winner.to) continue;
    for (const route::Timing& other : cell->routes) {
      if (other.route.backend == winner.route.backend) continue;
      const double ratio = other.median_us / taken->median_us;
      if (ratio > winner.ahead) winner.ahead = ratio, winner.rival = other.route;
      break;  // the fastest of them
    }
  }
}

}  // namespace

std::vector<Winner> winners(const route::Table& table) {
  std::set<std::tuple<route::Shape, Memory, Op, route::DTypeClass>> asked;
  for (const route::Cell& cell : table.cells())
    asked.insert({cell.key.shape, cell.key.memory, cell.key.op, cell.key.dtype});
  std::vector<Winner> out;
  for (const auto& [shape, memory, op, dtype] : asked) {
    const route::Chosen chosen = route::choose(table, op, memory, dtype, shape, route::any_route);
    for (const route::SizeRange& range : chosen.ranges) {
      Winner& winner = out.emplace_back(Winner{shape, memory, op, dtype, range.from, range.to, range.route});
      compare_with_others(chosen, winner);
    }
  }
  return out;
}

}  // namespace medley::tune
