// A rank that runs programs one after the other and reports the result of each.
#pragma once

#include <chrono>
#include <cstdint>
#include <medley/context.hpp>
#include <string>
#include <vector>

#include "soak/generate.hpp"
#include "soak/report.hpp"

namespace medley::soak {

struct WorkerOptions {
  std::uint64_t first = 1;  ///< the first seed
  std::int64_t programs = 1;
  double seconds = 0;                                            ///< stop after this time; 0: never
  std::vector<int> without{};                                    ///< steps to leave out
  std::chrono::nanoseconds deadline = std::chrono::seconds(30);  ///< for every wait of a program
  GenerateOptions generate{};
};

struct Tally {
  std::int64_t programs = 0, mismatches = 0, hangs = 0;
};

/// Runs the programs as one rank of the job. With a slot, a failure is reported there and the rank then waits
/// to be ended. Without one, the rank continues after a mismatch, and an error of the runtime is thrown.
Tally work(const WorkerOptions& options, Slot* slot);

}  // namespace medley::soak
