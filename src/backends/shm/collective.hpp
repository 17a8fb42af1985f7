// A collective on a shm lane: turned into one or two exchanges when it starts, then polled to its end.
// A lane runs one at a time, so the lane owns the only instance and nothing is allocated for small ones.
#pragma once

#include <cstdint>
#include <medley/backend.hpp>
#include <vector>

#include "backends/shm/exchange.hpp"

namespace medley::shm {

/// Sizes at which the protocols change places, per operation; measured (docs/performance.md).
struct Crossovers {
  std::size_t one_shot;         ///< reductions up to here: everybody combines everything
  std::size_t staged;           ///< parts up to here go through a staging slot, larger ones direct
  std::size_t segment;          ///< reductions up to here go through the segment, even in several chunks
  std::size_t past_cache;       ///< outputs beyond this are written around the cache
};

class Collective final : public Transfer {
 public:
  Collective(Exchanger& exchanger, bool direct_reads, bool oversubscribed);

  /// Null when it is complete at once.
  Transfer* start(const Call& call);
  Poll poll() override;
  std::vector<int> awaited() const override { return exchanger_.missing(); }
  void release() noexcept override;
  bool running() const { return running_; }
  void stop() noexcept;

 private:
  void plan(const Call& call);
  void plan_all_reduce(const Call& call, std::size_t bytes);
  void plan_reduce(const Call& call, std::size_t bytes);
  void plan_reduce_scatter(const Call& call);
  void plan_rooted_copy(const Call& call);
  void plan_copy_to_all(const Call& call);
  void split_evenly(std::int64_t count, std::size_t element);
  void combine_into(Exchange& exchange, const Call& call, void* into, const void* own, std::size_t bytes) const;
  /// The mode for a rank that hands over `bytes` in all, `part` of them to each peer at the most; `agreed`: every rank
  /// computes the same figures. Of a reduction all ranks choose alike; else each for what it gives.
  Mode mode(std::size_t bytes, std::size_t part, bool agreed, bool cache_local);
  Mode copying_mode(std::size_t bytes, std::size_t part, bool agreed) {
    return mode(bytes, part, agreed, exchanger_.readers_near());
  }
  Mode reducing_mode(std::size_t bytes, std::size_t part, bool agreed);
  /// The input, or a copy of it where peers would read it after this rank has overwritten it in place.
  const void* safe_source(const Call& call, std::size_t extent);
  Task run_both();

  Exchanger& exchanger_;
  bool direct_reads_;
  Crossovers crossovers_;
  bool running_ = false;
  bool begun_ = false;
  bool two_ = false;
  std::size_t handed_ = 0;                       ///< by mode(), for the exchange in line
  Exchange first_, second_;
  Task task_;
  std::vector<std::int64_t> counts_, offsets_;   ///< parts of a two-shot reduction
  std::vector<std::byte> scratch_;               ///< own part of a reduction to another root; copy of an in-place input
};

}  // namespace medley::shm
