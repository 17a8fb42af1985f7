// Whether the ranks of a comm are in equal blocks, each on one host: what hierarchical collectives need. Used by them
// and by whoever chooses routes for comms that are not made yet.
#pragma once

#include <cstddef>
#include <vector>

namespace medley::core {

/// How many ranks each block has, at least two, if the ranks of several hosts form equal contiguous blocks, each on one
/// host; otherwise 0.
template <class Host>
int ranks_per_block(const std::vector<Host>& host_of_each) {
  const std::size_t size = host_of_each.size();
  std::size_t block = 1;
  while (block < size && host_of_each[block] == host_of_each[0]) ++block;
  if (block < 2 || block == size || size % block != 0) return 0;
  for (std::size_t i = 0; i < size; ++i) {
    if (host_of_each[i] != host_of_each[i / block * block]) return 0;
    if (i % block == 0 && i > 0 && host_of_each[i] == host_of_each[i - 1]) return 0;
  }
  return static_cast<int>(block);
}

template <class Host>
bool in_equal_blocks(const std::vector<Host>& host_of_each) {
  return ranks_per_block(host_of_each) > 0;
}

}  // namespace medley::core
