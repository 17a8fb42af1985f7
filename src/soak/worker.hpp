// A rank that runs programs one after the other and says after each how it went.
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
  std::uint64_t first = 1;  ///< seeds from here on
  std::int64_t programs = 1;
  double seconds = 0;                                            ///< stop after this time; 0: never
  std::vector<int> without{};                                    ///< steps to leave out
  std::chrono::nanoseconds deadline = std::chrono::seconds(30);  ///< of every wait of a program
  GenerateOptions generate{};
};

struct Tally {
  std::int64_t programs = 0, mismatches = 0, hangs = 0;
};

/// Runs the programs on this rank's place in the job. With a slot, a failure is told there and the rank then
/// waits to be ended; without one, the rank goes on after a mismatch, and an error of the runtime is thrown.
Tally work(const WorkerOptions& options, Slot* slot);

}  // namespace medley::soak
