// Reading Slurm's node lists. Used by the environment to find the host of rank 0.
#pragma once

#include <medley/export.hpp>

#include <string>
#include <vector>

namespace medley {

/// Expands a Slurm node list: "gpu[01-03,07],login" gives gpu01, gpu02, gpu03, gpu07, login. Several
/// brackets in one name form a product, the last varying fastest. Error on a malformed list.
MEDLEY_API std::vector<std::string> expand_node_list(const std::string& list);

}  // namespace medley
