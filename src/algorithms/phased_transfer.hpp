// One collective in phases, each over one of the lanes of a hierarchical lane: what the collectives on host memory and
// on CUDA memory share. Ranks are hosts x places (local ranks): number = host * places + place.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <medley/error.hpp>
#include <medley/sdk/task.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "algorithms/hierarchical_lane.hpp"
#include "algorithms/registry.hpp"
#include "algorithms/running_transfers.hpp"

namespace medley::algorithms {

class PhasedTransfer : public Transfer {
 public:
  ~PhasedTransfer() override = default;  // uses no lane
  std::vector<int> awaited() const override {
    if (running_.empty()) return {};
    const Transfer* const last = running_.list().back();
    std::vector<int> ranks = last->awaited();
    for (int& rank : ranks) rank = lane_.whole_rank(lane_of(last), rank);
    return ranks;
  }
  bool under_way() const { return !running_.empty(); }
  void release() noexcept override {
    leave_order();
    if (complete_ || running_.empty()) {
      delete this;
    } else {
      lane_.orphans_.add(this);
    }
  }
  /// The phases under way own this transfer, its scratch and its lists, until their libraries no longer use them.
  void abandon(std::shared_ptr<const void> memory) noexcept override {
    leave_order();
    if (running_.empty()) return release();
    memory_ = std::move(memory);
    running_.abandon(std::shared_ptr<PhasedTransfer>(this));
  }

 protected:
  PhasedTransfer(HierarchicalLane& lane, const Call& call) : lane_(lane), call_(call) {}
  int places() const { return lane_.places_; }
  int hosts() const { return lane_.hosts_; }
  int host() const { return lane_.host_; }
  int place() const { return lane_.place_; }
  HierarchicalLane::Lanes& lanes() const { return lane_.parts_; }
  /// Its error names ranks of the comm.
  void progress(Lane& part) const {
    lane_.in_whole_ranks(&part, [&part] { part.progress(); });
  }
  PhaseOrder& order_of_phases() const { return lane_.order_; }
  /// The lane of a phase under way.
  virtual Lane* lane_of(const Transfer*) const { return at_; }

  /// One poll of the collective. Ranks in errors become those of the whole comm.
  Poll step(Task& task) {
    moved_ = false;
    try {
      const Poll seen = task.poll();
      if (seen == Poll::complete) complete_ = true;
      return seen == Poll::waiting && moved_ ? Poll::moved : seen;
    } catch (const Error& error) {
      throw lane_.in_whole_ranks(lane_of(running_.failed()), error);
    }
  }
  void enter_order() { lane_.issued_.push_back(this); }
  /// Those whom the earliest collective under way waits for.
  std::vector<int> awaited_by_earliest() const { return lane_.awaited_now(); }
  /// It is complete, or its lane has failed.
  void leave_order() noexcept {
    // Near the front: they complete in order
    const auto at = std::find(lane_.issued_.begin(), lane_.issued_.end(), this);
    if (at != lane_.issued_.end()) lane_.issued_.erase(at);
  }
  std::size_t bytes(std::int64_t count) const { return static_cast<std::size_t>(count) * size_of(call_.dtype); }
  const std::byte* in(std::int64_t at = 0) const { return static_cast<const std::byte*>(call_.in) + bytes(at); }
  std::byte* out(std::int64_t at = 0) const { return static_cast<std::byte*>(call_.out) + bytes(at); }

  /// Prepares the call of a phase.
  Call& phase(Op op, const void* from, std::int64_t in_count, void* to, std::int64_t out_count, int root = 0) {
    part_ = Call{};
    part_.op = op;
    part_.dtype = call_.dtype;
    part_.reduce = call_.reduce;
    part_.memory = call_.memory;
    part_.deterministic = call_.deterministic;
    part_.stream = call_.stream;
    part_.root = root;
    part_.in = from;
    part_.in_count = in_count;
    part_.out = to;
    part_.out_count = out_count;
    return part_;
  }
  /// Where the library's own reductions are slow, Medley's algorithm over its messages.
  void name_own_reduction() {
    if (reduces(part_.op) && lanes().own_reductions) part_.algorithm = choose(part_, hosts()).name;
  }
  /// Null if it was complete at once.
  Transfer* start_phase(Lane& lane) {
    at_ = &lane;
    Transfer* const started = lane.start(part_);
    running_.add(started);
    return started;
  }

  /// Splits a tensor into one slice for each local rank of a host: equal ones, but for `skew` elements more in the
  /// first than in the second.
  void slice(std::int64_t count, std::int64_t skew = 0) {
    counts_.clear(), offsets_.clear();
    for (int p = 0; p < places(); ++p) {
      offsets_.push_back(count * p / places());
      counts_.push_back(count * (p + 1) / places() - offsets_.back());
    }
    const std::int64_t moved = std::min(skew, counts_[1]);
    counts_[0] += moved, counts_[1] -= moved, offsets_[1] += moved;
  }
  std::int64_t own_count() const { return counts_[static_cast<std::size_t>(place())]; }
  std::int64_t own_offset() const { return offsets_[static_cast<std::size_t>(place())]; }
  void gather_slices(std::byte* whole, std::int64_t count) {
    Call& call = phase(Op::all_gatherv, whole + bytes(own_offset()), own_count(), whole, count);
    call.out_counts = counts_.data();
    call.out_offsets = offsets_.data();
  }
  /// The part of a broadcast's root: everybody else's slice, to the others of its host.
  void scatter_slices(std::int64_t count, int root_place) {
    // The root's own slice stays in place; scattering it to itself would need a destination buffer.
    sent_ = counts_;
    sent_[static_cast<std::size_t>(root_place)] = 0;
    const bool root = place() == root_place;
    Call& scatter = phase(Op::scatterv, root ? call_.in : nullptr, root ? count - own_count() : 0,
                          root ? nullptr : out(own_offset()), root ? 0 : own_count(), root_place);
    if (root) scatter.in_counts = sent_.data(), scatter.in_offsets = offsets_.data();
  }

  HierarchicalLane& lane_;
  Call call_;
  Call part_;  ///< of the current phase
  std::vector<std::int64_t> counts_, offsets_, sent_;
  Lane* at_ = nullptr;        ///< the lane of the last phase started
  RunningTransfers running_;  ///< phases under way
  bool moved_ = false;
  bool complete_ = false;
  std::shared_ptr<const void> memory_;  ///< what the call points to, for an abandoned transfer
};

}  // namespace medley::algorithms
