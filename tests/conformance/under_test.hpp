// Which backend the suite tests and how its ranks are started; taken from the environment, so that one build
// of the suite serves every backend and launcher.
//   MEDLEY_TEST_BACKEND  a backend's name (shm); for a pair also set MEDLEY_RULES, since no comm takes one by itself
//   MEDLEY_TEST_RANKS    processes: forked here (the default); threads: for sanitizers; launched: this
//                        is one rank of a launcher's job, and smaller rank counts are subsets of it
//   MEDLEY_TEST_MEMORY   cuda: the buffers of cases and letters are on the device (host)
//   MEDLEY_TEST_FULL     1: also what takes long or needs much memory
#pragma once

#include <cstdlib>
#include <medley/medley.hpp>
#include <numeric>
#include <string>
#include <thread>

#include "harness/ranks.hpp"

namespace medley::conformance {

inline std::string environment(const char* variable, const char* otherwise) {
  const char* text = std::getenv(variable);
  return text && *text ? text : otherwise;
}

inline std::string backend_under_test() { return environment("MEDLEY_TEST_BACKEND", "shm"); }
/// NCCL does not move host memory; the data that a test compares uses shm, or gloo where there are several hosts.
inline std::vector<std::string> backends_under_test() {
  if (backend_under_test() == "nccl") return {"nccl", "shm"};
  if (backend_under_test().starts_with("nccl+")) return {backend_under_test(), "gloo"};
  return {backend_under_test()};
}
/// What NCCL lacks: tags, any source, messages shorter than their receive, comms issued in different orders.
inline bool over_nccl() { return backend_under_test() == "nccl" || backend_under_test() == "nccl+nccl"; }
/// Algorithms over messages run on host memory, staged or not.
inline bool fills_in() { return !backend_under_test().starts_with("nccl"); }
inline std::string kind_of_ranks() { return environment("MEDLEY_TEST_RANKS", "processes"); }
inline bool full() { return environment("MEDLEY_TEST_FULL", "0") == "1"; }
/// Sanitizers see only threads and are slow: fewer cases of each kind.
inline bool reduced() { return kind_of_ranks() == "threads" || environment("MEDLEY_TEST_REDUCED", "0") == "1"; }

/// Backends that combine in rank order: their floats are also compared bit for bit.
inline bool rank_order_promised() { return backend_under_test() == "shm"; }

using CommBody = std::function<void(Comm&)>;

inline Context& launched_context() {
  static Context context(backends_under_test());
  return context;
}

/// Runs the body on every rank of a comm of `size` ranks. `deadline` is the context's.
inline void with_ranks(int size, const CommBody& body, std::chrono::nanoseconds deadline = std::chrono::minutes(5)) {
  if (kind_of_ranks() == "launched") {
    Comm world = launched_context().world();
    if (world.size() < size) GTEST_SKIP() << "the job has only " << world.size() << " ranks";
    std::vector<int> members(static_cast<std::size_t>(size));
    std::iota(members.begin(), members.end(), 0);
    if (Comm comm = world.subset(members)) body(comm);
    return world.barrier().wait();
  }
  const auto adjust = [&](ContextOptions& options) {
    options.backends = backends_under_test();
    // Ranks that are processes may share a device if NCCL takes them for different hosts.
    if (over_nccl() && kind_of_ranks() == "processes") {
      setenv("NCCL_HOSTID", ("rank" + std::to_string(options.rank)).c_str(), 1);
    }
    options.deadline = deadline;
  };
  const auto on_world = [&](Context& context) {
    Comm world = context.world();
    body(world);
  };
  if (kind_of_ranks() == "threads") {
    test::run_threads(size, on_world, adjust);
  } else {
    test::run_processes(size, on_world, adjust);
  }
}

}  // namespace medley::conformance
