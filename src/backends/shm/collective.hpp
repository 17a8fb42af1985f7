// A collective on a shm lane: becomes one or two exchanges when it starts, then is polled to completion. A lane runs
// one at a time, so it owns the only instance, and small collectives allocate nothing.
#pragma once

#include <cstdint>
#include <medley/backend.hpp>
#include <vector>

#include "backends/shm/algorithm.hpp"
#include "backends/shm/crossovers.hpp"
#include "backends/shm/exchange.hpp"

namespace medley::shm {

inline std::size_t bytes_of(std::int64_t count, DType dtype) {
  return static_cast<std::size_t>(count) * size_of(dtype);
}

class Collective final : public Transfer {
 public:
  Collective(Exchanger& exchanger, const HostPeers& host_peers);

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
  void plan_broadcast(const Call& call);
  void plan_gather(const Call& call);
  void plan_scatter(const Call& call);
  void plan_copy_to_all(const Call& call);
  void split_evenly(std::int64_t count, std::size_t element);
  void combine_into(Exchange& exchange, const Call& call, void* into, const void* own, std::size_t bytes) const;
  /// The mode for a rank that hands over `bytes` in all. `small`: few enough to be staged; `segment`: staged or
  /// streamed, however large; `agreed`: every rank computes the same figures. In a reduction all ranks choose alike;
  /// otherwise each chooses for what it gives.
  Mode mode(std::size_t bytes, bool small, bool segment, bool agreed);
  Mode copying_mode(std::size_t bytes, bool small, std::size_t segment_limit, bool agreed) {
    return mode(bytes, small, bytes <= segment_limit || exchanger_.readers_near(), agreed);
  }
  Mode reducing_mode(std::size_t bytes, std::size_t part, bool agreed) {
    return mode(bytes, part <= crossovers_.staged, bytes <= crossovers_.reduction_segment || exchanger_.all_near(),
                agreed);
  }
  /// Whether the root lays out data while its readers copy. A named algorithm is the same on every machine.
  bool pipelined(bool root) const {
    return root &&
           (first_.mode == Mode::streamed ||
            (first_.mode == Mode::staged && (crossovers_.pipelined || algorithm_.path != Algorithm::Path::by_size)));
  }
  bool scatters_mixed(std::size_t all, std::size_t part) const;
  void set_scatter_mode(std::size_t bytes, bool root, bool agreed);
  /// For the second of two shots, with `bytes` in all.
  Mode second_mode(std::size_t bytes, bool segment) const;
  Mode through_segment(std::size_t bytes) const {
    return bytes <= exchanger_.slot_bytes() ? Mode::staged : Mode::streamed;
  }
  bool in_one_shot(std::size_t bytes, std::size_t limit) const {
    if (exchanger_.ranks() == 1) return true;
    return algorithm_.shots == Algorithm::Shots::by_size ? bytes <= limit : algorithm_.shots == Algorithm::Shots::one;
  }
  /// The input, or a copy of it where peers would read it after this rank has overwritten it in place.
  const void* safe_source(const Call& call, std::size_t extent);
  Task run_both();

  Exchanger& exchanger_;
  bool direct_reads_;
  Crossovers crossovers_;
  Algorithm algorithm_;  ///< of the running call
  bool running_ = false;
  bool begun_ = false;
  bool two_ = false;
  std::size_t handed_ = 0;  ///< set by mode(), for the in-line exchange
  Exchange first_, second_;
  Task task_;
  std::vector<std::int64_t> counts_, offsets_;  ///< parts of a two-shot reduction
  std::vector<std::byte> scratch_;              ///< own part of a reduction to another root; copy of an in-place input
};

}  // namespace medley::shm
