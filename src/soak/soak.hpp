// Supervises ranks that run random programs: ends those that hang, shrinks failing programs and counts. Runs
// in the process that the user started; the ranks are separate processes.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "soak/worker.hpp"

namespace medley::soak {

struct SoakOptions {
  int ranks = 2;
  WorkerOptions work{};
  std::chrono::seconds shrink_time{60};  ///< for all failures together
};

struct Failure {
  enum class What : std::uint8_t { mismatch, hang } what{};
  std::uint64_t program = 0;
  std::string text{};           ///< what the ranks reported
  std::vector<int> left_out{};  ///< steps that can be removed while it still fails
};

struct Outcome {
  std::int64_t programs = 0;
  std::vector<Failure> failures{};
};

/// `progress` receives the number of finished programs from time to time; `failed` receives each failure when
/// found, already shrunk.
Outcome soak(const SoakOptions& options, const std::function<void(std::int64_t)>& progress,
             const std::function<void(const Failure&)>& failed);

/// The command-line arguments that start a rank for these programs.
std::vector<std::string> worker_words(const WorkerOptions& options);

}  // namespace medley::soak
