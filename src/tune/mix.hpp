// Whole mixes of operations as training steps issue them, over one backend or over a route per operation. For
// `medley bench --mix`.
#pragma once

#include <medley/medley.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tune/job_clock.hpp"
#include "tune/statistics.hpp"

namespace medley::tune {

/// `moe`: tokens go to their experts and back (all_to_all) while gradients of the layer before are summed (all_reduce).
/// `dlrm`: embeddings of different sizes are exchanged (all_to_allv) while the layers' gradients are summed in buckets.
/// `dense`: gradient buckets are summed while activations go to the next stage of the pipeline (send, recv).
inline constexpr std::string_view mix_names[] = {"moe", "dlrm", "dense"};

struct MixRow {
  std::string mix;
  std::string backend;  ///< or "auto"
  Memory memory{};
  Summary time{};  ///< µs of one step
  std::size_t iterations = 0;
  /// Over the fastest single library of its mix, the median of ratios within rounds; 0: none was measured
  double speedup = 0;
  double speedup_low = 0, speedup_high = 0;  ///< its 95 % interval; 0 without rounds
  double speedup_over_two = 0;               ///< over the fastest backend made of two, such as shm+mpi
  std::vector<double> samples_us{};          ///< one of each round
};

struct MixOptions {
  std::vector<std::string> mixes;
  std::vector<std::string> backends;
  Memory memory = Memory::host;
  double seconds = 6;  ///< for all rows together
};

/// Fills in the speedups.
void compare_mixes(std::vector<MixRow>& rows);

/// Every mix over every wanted backend that the world has, interleaved; each is checked once before it is timed, and a
/// wrong result throws. Collective; rows are the same on all ranks.
std::vector<MixRow> bench_mixes(Context& context, JobClock& clock, const MixOptions& options);

}  // namespace medley::tune
