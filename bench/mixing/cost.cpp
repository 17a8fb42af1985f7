// The cost of mixing: operations that alternate between two backends, compared with the same operations of
// each backend run separately. Run as `medley run -n 2 --backends shm,mpi,ucx --
// build/release/bin/bench_mixing`; rank 0 prints the table.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <medley/medley.hpp>
#include <string>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int rounds = 41;  // separate and alternating, interleaved: noise affects both equally

/// The slowest rank's microseconds for `count` operations on each of the given backends, alternating.
double timed(medley::Comm& world, std::vector<float>& data, const std::vector<std::string>& backends, int count) {
  world.barrier({.backend = backends.front()});
  const auto before = Clock::now();
  for (int i = 0; i < count; ++i) {
    for (const std::string& backend : backends) world.all_reduce(data, medley::sum, {.backend = backend});
  }
  std::vector<double> took{std::chrono::duration<double, std::micro>(Clock::now() - before).count()};
  world.all_reduce(took, medley::max, {.backend = backends.front()});
  std::fill(data.begin(), data.end(), 1.0f);  // keeps the sums from growing without bound
  return took[0] / count;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

void compare(medley::Comm& world, const std::string& a, const std::string& b, std::size_t bytes) {
  std::vector<float> data(bytes / sizeof(float), 1.0f);
  const int count = bytes <= 4096 ? 200 : bytes <= 65536 ? 50 : 10;
  std::vector<double> apart, mixed, ratios;
  for (int round = 0; round < rounds; ++round) {
    const double sum = timed(world, data, {a}, count) + timed(world, data, {b}, count);
    const double both = timed(world, data, {a, b}, count);
    apart.push_back(sum), mixed.push_back(both), ratios.push_back(both / sum);
  }
  if (world.rank() == 0) {
    fmt::print("| {} + {} | {} | {:.2f} | {:.2f} | {:.3f} |\n", a, b, bytes, median(apart), median(mixed),
               median(ratios));
    std::fflush(stdout);
  }
}

}  // namespace

int main() {
  try {
    medley::Context context;
    medley::Comm world = context.world();
    std::vector<std::string> backends;
    for (const medley::BackendInfo& one : context.backends()) {
      if (one.available) backends.push_back(one.name);
    }
    if (world.rank() == 0)
      fmt::print("| backends | bytes | apart µs | alternating µs | ratio |\n|---|--:|--:|--:|--:|\n");
    for (std::size_t i = 0; i < backends.size(); ++i) {
      for (std::size_t j = i + 1; j < backends.size(); ++j) {
        for (std::size_t bytes : {4u, 4096u, 65536u, 1u << 20}) compare(world, backends[i], backends[j], bytes);
      }
    }
    return 0;
  } catch (const medley::Error& error) {
    fmt::print(stderr, "bench_mixing: {}\n", error.what());
    return 1;
  }
}
