// The overhead of recording on an operation: one rank, an all_reduce of one float, in contexts without
// recording, with the always-on ring, and with everything kept in a file, interleaved in one run.
//   cmake --preset release -DMEDLEY_BENCH=ON && cmake --build --preset release --target bench_trace
//   build/release/bin/bench_trace
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <medley/medley.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int rounds = 200, operations = 4000;  // less than the ring holds; a file grows by 2^18

struct Candidate {
  const char* name;
  std::unique_ptr<medley::Context> context;
  std::vector<double> ns;
};

Candidate make(const char* name, const char* variable, const char* value) {
  if (variable) setenv(variable, value, 1);
  medley::ContextOptions options;
  options.rank = 0;
  options.size = 1;
  Candidate out{name, std::make_unique<medley::Context>(options), {}};
  if (variable) unsetenv(variable);
  return out;
}

double ns_per_operation(medley::Context& context) {
  std::vector<float> value(1);
  medley::Comm world = context.world();
  const auto begin = Clock::now();
  for (int i = 0; i < operations; ++i) world.all_reduce(value, medley::sum);
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / operations;
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

}  // namespace

int main() {
  std::string folder = std::filesystem::temp_directory_path() / "medley-bench-trace-XXXXXX";
  if (!mkdtemp(folder.data())) throw std::runtime_error("cannot make the folder " + folder);
  std::vector<Candidate> all;
  all.push_back(make("off", "MEDLEY_RECORD", "off"));
  all.push_back(make("ring", nullptr, nullptr));
  all.push_back(make("file", "MEDLEY_TRACE", folder.c_str()));
  for (auto& candidate : all) ns_per_operation(*candidate.context);
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      auto& candidate = all[(i + static_cast<std::size_t>(round)) % all.size()];
      candidate.ns.push_back(ns_per_operation(*candidate.context));
    }
  }
  fmt::print("{:<6} {:>10} {:>10} {:>22}\n", "", "best ns", "median ns", "median over off, ns");
  for (const auto& candidate : all) {
    std::vector<double> more;  // round by round, so that drift cancels
    for (std::size_t r = 0; r < candidate.ns.size(); ++r) more.push_back(candidate.ns[r] - all[0].ns[r]);
    fmt::print("{:<6} {:>10.1f} {:>10.1f} {:>22.1f}\n", candidate.name, quantile(candidate.ns, 0),
               quantile(candidate.ns, 0.5), quantile(more, 0.5));
  }
  all.clear();
  std::filesystem::remove_all(folder);
}
