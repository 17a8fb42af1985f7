#include "soak/shuffled_routes.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "algorithms/registry.hpp"
#include "route/table.hpp"

namespace medley::soak {
namespace {

/// Over each backend its own collective and the first of Medley's algorithms, all equally fast. Contexts skip what a
/// comm cannot take.
std::vector<route::Timing> timings(const std::vector<std::string>& backends, Op op) {
  std::vector<route::Timing> list;
  for (const std::string& backend : backends)
    list.push_back({{backend, std::string(algorithms::native)}, 100, 99, 101, 20});
  const auto names = algorithms::names(op);
  for (const std::string& backend : backends) {
    if (!names.empty()) list.push_back({{backend, std::string(names.front())}, 110, 109, 111, 20});
  }
  return list;
}

}  // namespace

ShuffledRoutes::ShuffledRoutes(const std::vector<std::string>& backends) {
  route::Table table;
  table.machine = route::this_machine();
  for (int i = 0; i < op_count; ++i) {
    const auto op = static_cast<Op>(i);
    if (!is_collective(op) || is_v_collective(op)) continue;
    for (int c = 0; c < route::dtype_class_count; ++c) {
      const auto dtype = static_cast<route::DTypeClass>(c);
      if (reduces(op) == (dtype == route::DTypeClass::any)) continue;
      // The nearest serves comms of other sizes
      for (const route::Shape shape : {route::Shape{1, 2}, route::Shape{2, 1}}) {
        for (const std::int64_t bytes : {std::int64_t{64}, std::int64_t{64} << 10}) {
          table.put({{op, Memory::host, dtype, shape, bytes}, timings(backends, op), 0.99});
        }
      }
    }
  }
  path_ = (std::filesystem::temp_directory_path() / fmt::format("medley-soak-{}.json", getpid())).native();
  table.save(path_);
  setenv("MEDLEY_ONLINE", "shuffle", 1);
}

ShuffledRoutes::~ShuffledRoutes() {
  unsetenv("MEDLEY_ONLINE");
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace medley::soak
