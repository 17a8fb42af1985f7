// Sizes at which the shm collectives change from one algorithm to another. A function of values that are
// equal on all ranks.
#pragma once

#include <cstddef>

namespace medley::shm {

struct Crossovers {
  std::size_t one_shot;            ///< reductions up to here: every rank reduces everything
  std::size_t broadcast_one_shot;  ///< broadcasts up to here: every rank reads everything from the root
  std::size_t staged;              ///< parts up to here go through a staging slot
  std::size_t scatter_staged;      ///< the same for a scatter, of all parts together
  // Up to here everything goes through the segment, even in several chunks; above, what is not staged is read directly.
  std::size_t reduction_segment;    ///< of the whole tensor
  std::size_t broadcast_segment;    ///< of the whole tensor
  std::size_t gather_segment;       ///< of what one rank gives to a root
  std::size_t scatter_segment;      ///< of all parts together
  std::size_t least_mixed_scatter;  ///< from here on it is mixed, if a part fits into a slot; of all parts together
  int scattered;                    ///< parts of a mixed scatter that go through the segment
  std::size_t exchange_segment;     ///< of what one rank gives to all others: all_gather, all_to_all
  std::size_t past_cache;           ///< outputs beyond this are written around the cache
  bool pipelined;                   ///< whether a staging root lays out step by step while its readers copy

  struct Given {
    int ranks;
    std::size_t slot_bytes;
    bool direct_reads;    ///< whether they work
    bool may_stream;      ///< whether large data may go through the segment where they do
    bool oversubscribed;  ///< ranks outnumber cores
  };
  explicit Crossovers(const Given& given);
};

}  // namespace medley::shm
