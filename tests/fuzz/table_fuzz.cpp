// Fuzzes the reader of route tables and rules: each must return or reject, and what was read can be written,
// read again and chosen from.
#include <algorithm>
#include <medley/error.hpp>

#include "route/choose.hpp"

namespace {

void use(const medley::route::Table& table) {
  using namespace medley;
  const std::string text = table.text();
  const route::Table again = route::Table::parse(text, "again");
  if (again.text() != text) __builtin_trap();
  for (const auto& cell : table.cells()) {
    const auto chosen =
        route::choose(table, cell.key.op, cell.key.memory, cell.key.dtype, cell.key.shape, route::any_route);
    const bool plain = std::any_of(cell.routes.begin(), cell.routes.end(), [](const route::Timing& timing) {
      return !compress::is_compressed(timing.route.algorithm);
    });
    if (chosen.ranges.empty() && plain && is_collective(cell.key.op)) __builtin_trap();
    for (const route::SizeRange& range : chosen.ranges) {
      if (compress::is_compressed(range.route.algorithm)) __builtin_trap();  // nobody allowed it
    }
    if (!route::nearest_size(chosen.cells, cell.key.bytes)) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    use(medley::route::Table::parse(text, "fuzzed"));
  } catch (const medley::Error& error) {
    if (error.kind() != medley::ErrorKind::invalid) __builtin_trap();
  }
  try {
    const std::string rules = medley::Rules::parse(text).text();
    if (medley::Rules::parse(rules).text() != rules) __builtin_trap();
  } catch (const medley::Error& error) {
    if (error.kind() != medley::ErrorKind::invalid) __builtin_trap();
  }
  return 0;
}
