// Whole mixes of operations as training steps issue them, over one backend or over routes that each operation gets for
// itself. Behind `medley bench --mix`.
#pragma once

#include <functional>
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
  std::string backend;       ///< or "auto"
  Summary time{};            ///< µs of one step
  std::size_t iterations = 0;
};

/// Every mix over every wanted backend that the world has, by turns, `seconds` for all together. Collective; rows are the same on all ranks.
std::vector<MixRow> bench_mixes(Context& context, JobClock& clock, const std::vector<std::string>& mixes,
                                const std::vector<std::string>& wanted, double seconds);

}  // namespace medley::tune
