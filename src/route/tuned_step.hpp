// What a table records about a whole step that it was tuned for: how long the step took over every single library and
// over the routes chosen for it, and those routes. Written by `medley tune --for`; choose() prefers its routes to those
// of single operations.
#pragma once

#include <cstdint>
#include <medley/rules.hpp>
#include <set>
#include <string>
#include <vector>

#include "route/key.hpp"

namespace medley::route {

/// The time of a step over one library, one pair such as shm+mpi, or the routes chosen.
struct StepTiming {
  std::string name;  ///< the backend; "auto" for the routes chosen
  double median_us = 0;
  double low_us = 0, high_us = 0;  ///< 95 % interval of the median
  std::int64_t samples = 0;
};

/// The route of one operation of the step for a range of sizes, both ends inclusive.
struct StepRoute {
  Op op{};
  DTypeClass dtype = DTypeClass::any;
  Shape shape{};
  std::int64_t from = 0, to = INT64_MAX;
  Choice route;  ///< the algorithm is always named; "native": the library's own
};

struct MEDLEY_API TunedStep {
  std::string name;        ///< the schedule's file, or the built-in mix
  std::string operations;  ///< a hash of what it computes and sends: another one is another step
  Shape shape{};           ///< of the world
  /// The host of each rank, numbered from 0, where the ranks are not in equal blocks of the shape; otherwise empty
  std::vector<int> placement{};
  Memory memory = Memory::host;
  std::vector<StepTiming> libraries;  ///< and pairs; fastest first
  StepTiming chosen;                  ///< over the routes below
  /// All routes name this library, since no mix was surely faster; empty: they are a mix
  std::string library;
  std::string against;  ///< the library that `gain` is over; empty in tables of before 19 November 2026
  /// That library's time over the chosen one, with its 95 % interval
  double gain = 1, gain_low = 1, gain_high = 1;
  double confidence = 0.5;  ///< that the chosen routes are at least as fast as that library
  bool settled = false;     ///< nothing was left to decide; false: time was short, or it was stopped
  double needed_s = 0;      ///< if it is not settled, how long tuning would take to settle it, s; 0: unknown
  std::vector<StepRoute> routes;

  /// The library that the choice was compared with: that of all routes, else the fastest, pairs only if there is
  /// nothing else; null if none was measured.
  const StepTiming* best_library() const noexcept;
  /// The host of each rank of the world.
  std::vector<int> hosts() const;
  /// The backends that its routes name.
  std::set<std::string> backends() const;
};

}  // namespace medley::route
