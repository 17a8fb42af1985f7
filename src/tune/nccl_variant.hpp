// Measuring NCCL's algorithms one by one: NCCL takes the algorithm and protocol that the environment fixes when a
// communicator is made, so a tuning run under NCCL_ALGO=Ring NCCL_PROTO=LL128 measures nccl/ring_ll128. Used by the
// tuner and `medley tune --nccl`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <medley/types.hpp>

#include "route/nccl_algorithm.hpp"

namespace medley::tune {

/// Those that NCCL has for some collective; NVLS and PAT only on hardware and versions that support them.
std::vector<route::NcclAlgorithm> nccl_variants();
/// `all`, or names such as ring_ll128 separated by commas. Throws Error(invalid) that names the wrong one.
std::vector<route::NcclAlgorithm> parse_nccl_variants(const std::string& text);

/// Whether NCCL has this algorithm for the collective.
bool serves(const route::NcclAlgorithm& variant, Op op);

/// What the environment fixes: none unless NCCL_ALGO and NCCL_PROTO both name exactly one.
std::optional<route::NcclAlgorithm> nccl_variant_of_environment();
/// Fixes it for communicators that this process makes from now on.
void set_nccl_variant(const route::NcclAlgorithm& variant);

}  // namespace medley::tune
