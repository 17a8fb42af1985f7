// A route table in the form that another library reads, so that jobs that do not run on Medley profit from what it
// measured. Used by `medley tune --export`.
#pragma once

#include <string>

#include "route/table.hpp"

namespace medley::tune {

struct Export {
  std::string text;       ///< of the file
  std::size_t rules = 0;  ///< how many choices it contains
};

/// The CSV of NCCL's example tuner plugin: which algorithm, protocol and number of channels NCCL uses by collective,
/// size and number of nodes and ranks. From the rows of nccl/ALGORITHM_PROTOCOL[_cCHANNELS] (route/nccl_algorithm.hpp).
/// Throws Error(invalid) if the table has none.
Export nccl_export(const route::Table& table);

/// A configuration file of UCC with the score string of its UCP layer. From the rows of Medley's algorithms over ucx,
/// which are those of that layer and send over the same UCX. Throws Error(invalid) if the table has none.
Export ucc_export(const route::Table& table);

}  // namespace medley::tune
