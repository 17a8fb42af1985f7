#include "tune/candidates.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "algorithms/registry.hpp"
#include "algorithms/split_share.hpp"
#include "compress/spec.hpp"
#include "route/pair_name.hpp"
#include "tune/workload.hpp"

namespace medley::tune {
namespace {

constexpr std::size_t few_bytes = 64;

/// Of a split: the tuner drops those that are behind after a few samples.
constexpr std::string_view shares_to_try[] = {"share10", "share25", "share40", "share50",
                                              "share60", "share75", "share90"};

/// Backends and algorithms are agreed when a comm is created, so every rank gets the same refusal before anything is
/// sent.
bool works(Workload& trial, const Choice& route) {
  try {
    trial.check(route);
    return true;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::invalid || error.kind() == ErrorKind::unavailable) return false;
    throw;
  }
}

}  // namespace

void check_algorithms(Comm& comm, const std::vector<Op>& ops, DType dtype, Memory memory, const Wanted& wanted) {
  std::set<std::string_view> known{algorithms::native};
  for (int op = 0; op < op_count; ++op) {
    const std::vector<std::string_view> names = algorithms::names(static_cast<Op>(op));
    known.insert(names.begin(), names.end());
  }
  for (const std::string& algorithm : wanted.algorithms) {
    if (known.contains(algorithm) || algorithms::share_of(algorithm) || compress::is_compressed(algorithm)) continue;
    const Wanted only{.backends = wanted.backends, .algorithms = {algorithm}};  // perhaps a backend's own
    if (std::any_of(ops.begin(), ops.end(), [&](Op op) { return !candidates(comm, op, dtype, memory, only).empty(); }))
      continue;
    throw Error(ErrorKind::invalid,
                fmt::format("no operation has an algorithm '{}'; there are {}, a backend's own, share5 to share95 for "
                            "splits and +CODEC for compressed ones",
                            algorithm, fmt::join(known, ", ")));
  }
}

std::vector<Candidate> candidates(Comm& comm, Op op, DType dtype, Memory memory, const Wanted& wanted) {
  Workload trial(comm, op, few_bytes, dtype, memory);
  std::vector<std::string> named = wanted.algorithms;
  if (wanted.every_algorithm) {
    named = {"native"};
    for (const std::string_view name : algorithms::names(op)) named.emplace_back(name);
  }
  std::vector<Candidate> found;
  for (const std::string& backend : wanted.backends) {
    if (backend == "auto") {
      found.push_back({{}, "auto", ""});
      continue;
    }
    if (!works(trial, {backend, {}})) continue;
    if (wanted.every_algorithm && route::is_split(backend)) {
      if (!algorithms::divisible(op)) continue;  // over its first library, which is measured by itself
      for (const std::string_view share : shares_to_try)
        found.push_back({{backend, std::string(share)}, backend, std::string(share)});
      continue;
    }
    // A hierarchical backend takes user messages from its second half. Of the algorithms over messages, only those that
    // send every byte directly to its destination can pay off; trees and rings would cross the network where phases do
    // not.
    const bool pair = wanted.every_algorithm && route::is_pair(backend);
    if (!is_collective(op) && pair) continue;
    const auto worth_it = [&](const std::string& algorithm) {
      return !pair || (!reduces(op) && (algorithm == "linear" || algorithm == "pairwise"));
    };
    if (!is_collective(op)) {  // messages have no algorithms
      found.push_back({{backend, {}}, backend, "native"});
      continue;
    }
    const bool native = comm.size() == 1 || works(trial, {backend, "native"});
    if (named.empty()) found.push_back({{backend, {}}, backend, native ? "native" : "filled"});
    for (const std::string& algorithm : named) {
      if (algorithm == "native" ? native
                                : comm.size() > 1 && worth_it(algorithm) && works(trial, {backend, algorithm})) {
        found.push_back({{backend, algorithm}, backend, algorithm});
      }
    }
    for (const std::string& codec : wanted.codecs) {
      const std::string algorithm = compress::mark + codec;
      if (op != Op::barrier && comm.size() > 1 && works(trial, {backend, algorithm}))
        found.push_back({{backend, algorithm}, backend, algorithm});
    }
  }
  return found;
}

}  // namespace medley::tune
