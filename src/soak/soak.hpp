// Watches ranks run random programs, ends those that hang, cuts failing programs down and counts. Runs in the
// process that the user started; the ranks are processes of their own.
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
  std::string text{};           ///< what the ranks said
  std::vector<int> left_out{};  ///< steps it fails without
};

struct Outcome {
  std::int64_t programs = 0;
  std::vector<Failure> failures{};
};

/// `progress` is told now and then how many programs are done; `failed` of each failure as it is found,
/// shrunk.
Outcome soak(const SoakOptions& options, const std::function<void(std::int64_t)>& progress,
             const std::function<void(const Failure&)>& failed);

/// The words with which a rank is started for these programs.
std::vector<std::string> worker_words(const WorkerOptions& options);

}  // namespace medley::soak
