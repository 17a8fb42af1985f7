// What ended jobs left in a flight recorder's folder, and how much of it stays. The recorder of each starting rank applies the
// limits.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace medley::core {

/// Of jobs whose processes have all ended. The newest of them stays even if it alone is larger.
struct EndedJobLimits {
  std::chrono::hours age{72};
  std::size_t jobs = 100;
  std::uintmax_t bytes = std::uintmax_t{256} << 20;
};

/// Removes the jobs beyond the limits, the oldest first. A folder is removed only if it has a job's name and contains nothing
/// but finished recordings. Several processes may do so at once.
void remove_ended_jobs(const std::filesystem::path& folder, const EndedJobLimits& limits);

}  // namespace medley::core
