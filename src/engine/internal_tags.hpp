// Medley's own tags beside those of filled-in collectives: of the messages by which the ranks of a comm exchange values
// that decide routes. Used by SizeAgreement and OnlineRoutes.
#pragma once

#include <cstddef>
#include <medley/backend.hpp>

#include "algorithms/filled_lane.hpp"

namespace medley::core {

/// Kinds of v-collectives whose sizes are exchanged: three operations, two kinds of memory.
inline constexpr std::size_t size_exchange_kinds = 6;

/// One per kind: within a kind, receives arrive in the order of the sends; across kinds they need not.
constexpr int size_exchange_tag(std::size_t kind) { return -1 - algorithms::collective_tags - static_cast<int>(kind); }

inline constexpr int time_exchange_tag = size_exchange_tag(size_exchange_kinds);

static_assert(-time_exchange_tag <= internal_tags, "algorithms::collective_tags leaves too few tags");

}  // namespace medley::core
