// The cost of an operation when many are pending: 2,000 against 20,000 async all_reduces, and messages, each
// on its own memory, all issued and then waited for. Run as `medley run -n 2 --
// build/release/bin/bench_pending`; rank 0 prints a row per backend and kind. The last two columns should be
// near 1: cost must not grow with the number of pending operations.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <medley/medley.hpp>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t few = 2'000, many = 20'000;
constexpr int rounds = 7;  // few and many interleaved: noise affects both equally

struct Cost {
  double issue = 0, complete = 0;  ///< microseconds per operation
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

Cost timed(medley::Comm& world, const std::string& backend, bool messages, std::size_t count) {
  std::vector<std::vector<float>> buffers(count, std::vector<float>(4, 1.0f));
  std::vector<medley::Work> works(count);
  const medley::Options options{.backend = backend, .async = true};
  world.barrier({.backend = backend});
  const auto begun = Clock::now();
  for (std::size_t i = 0; i < count; ++i) {
    if (!messages) {
      works[i] = world.all_reduce(buffers[i], medley::sum, options);
    } else if (world.rank() % 2 == 0) {
      works[i] = world.send(buffers[i], world.rank() + 1, options);
    } else {
      works[i] = world.recv(buffers[i], world.rank() - 1, options);
    }
  }
  const auto issued = Clock::now();
  for (medley::Work& work : works) work.wait();
  const auto complete = Clock::now();
  const auto each = [count](Clock::duration took) {
    return std::chrono::duration<double, std::micro>(took).count() / static_cast<double>(count);
  };
  return {each(issued - begun), each(complete - begun)};
}

void compare(medley::Comm& world, const std::string& backend, bool messages) {
  std::vector<double> issue_few, issue_many, complete_few, complete_many, issue_ratio, complete_ratio;
  for (int round = 0; round < rounds; ++round) {
    const Cost a = timed(world, backend, messages, few), b = timed(world, backend, messages, many);
    if (round == 0) continue;  // the first round touches all memory for the first time
    issue_few.push_back(a.issue), issue_many.push_back(b.issue), issue_ratio.push_back(b.issue / a.issue);
    complete_few.push_back(a.complete), complete_many.push_back(b.complete),
        complete_ratio.push_back(b.complete / a.complete);
  }
  if (world.rank() != 0) return;
  fmt::print("| {} | {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} |\n", backend,
             messages ? "messages" : "all_reduce", median(issue_few), median(issue_many), median(complete_few),
             median(complete_many), median(issue_ratio), median(complete_ratio));
  std::fflush(stdout);
}

}  // namespace

int main() {
  try {
    medley::Context context;
    medley::Comm world = context.world();
    if (world.size() % 2 != 0)
      throw medley::Error(medley::ErrorKind::invalid, "this benchmark needs an even number of ranks");
    if (world.rank() == 0) {
      fmt::print(
          "| backend | operation | issue µs, {0} | issue µs, {1} | issue to end µs, {0} | issue to end µs, {1} | issue ratio | end ratio |\n",
          few, many);
      fmt::print("|---|---|--:|--:|--:|--:|--:|--:|\n");
    }
    for (const medley::BackendInfo& one : context.backends()) {
      if (!one.available) continue;
      compare(world, one.name, false);
      compare(world, one.name, true);
    }
  } catch (const medley::Error& error) {
    fmt::print(stderr, "bench_pending: {}\n", error.what());
    return 1;
  }
}
