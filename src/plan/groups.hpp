// The ranks of a named group, for replaying schedules and for placing groups on hosts.
#pragma once

#include <string_view>
#include <vector>

#include "plan/words.hpp"

namespace medley::plan {

/// Ranks of the group with that name that contains `rank`, ascending; empty for an unknown name.
std::vector<Count> group_ranks(const Layout& layout, Count rank, std::string_view group);

}  // namespace medley::plan
