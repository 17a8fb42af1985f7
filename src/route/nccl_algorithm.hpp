// The algorithms, protocols and channels of NCCL as names of routes: `nccl/ring_ll128`, `nccl/tree_simple_c8`. Used by
// the tuner that measures them, by the export for NCCL's example tuner and by Medley's own tuner plugin for NCCL.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <medley/export.hpp>

namespace medley::route {

/// In the order of NCCL's own numbers, which its tuner interface uses as indices.
inline constexpr std::array<std::string_view, 7> nccl_algorithms = {
    "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
inline constexpr std::array<std::string_view, 3> nccl_protocols = {"ll", "ll128", "simple"};

struct NcclAlgorithm {
  int algorithm = 0;  ///< an index of nccl_algorithms
  int protocol = 0;   ///< an index of nccl_protocols
  int channels = 0;   ///< 0: NCCL's choice
  bool operator==(const NcclAlgorithm&) const = default;
};

/// None for any other name, such as `native`, NCCL's own choice.
MEDLEY_API std::optional<NcclAlgorithm> parse_nccl_algorithm(std::string_view name);
MEDLEY_API std::string name(const NcclAlgorithm& algorithm);

}  // namespace medley::route
