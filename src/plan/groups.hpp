// The ranks behind a group's name, for schedules that are replayed and for placing groups on hosts.
#pragma once

#include <string_view>
#include <vector>

#include "plan/words.hpp"

namespace medley::plan {

/// Ranks of the group of that name that `rank` belongs to, ascending; empty for a name that is not known.
std::vector<Count> group_ranks(const Layout& layout, Count rank, std::string_view group);

}  // namespace medley::plan
