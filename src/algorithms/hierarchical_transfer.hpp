// One collective of a hierarchical backend, in phases: some inside each host, some between the hosts. Created by the lane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <medley/sdk/task.hpp>
#include <utility>
#include <vector>

#include "algorithms/hierarchical_lane.hpp"
#include "algorithms/job.hpp"
#include "algorithms/registry.hpp"

namespace medley::algorithms {

/// Ranks are hosts x places (local ranks): number = host * places + place.
class HierarchicalTransfer final : public Transfer {
 public:
  HierarchicalTransfer(HierarchicalLane& lane, const Call& call) : lane_(lane), call_(call), task_(run()) {}
  ~HierarchicalTransfer() override = default;   // uses no lane

  Poll poll() override {
    moved_ = false;
    const Poll seen = task_.poll();
    if (seen == Poll::complete) complete_ = true;
    return seen == Poll::waiting && moved_ ? Poll::moved : seen;
  }
  std::vector<int> awaited() const override {
    std::vector<int> ranks = inner_ ? inner_->awaited() : std::vector<int>{};
    for (int& rank : ranks) rank = lane_.whole_rank(at_, rank);
    return ranks;
  }
  void release() noexcept override {
    if (complete_ || !inner_) {
      delete this;
    } else {
      lane_.orphans_.push_back(this);
    }
  }
  /// The current phase owns this transfer, its scratch and its lists, until its library no longer uses them.
  void abandon(std::shared_ptr<const void> memory) noexcept override {
    if (!inner_) return release();
    memory_ = std::move(memory);
    std::exchange(inner_, nullptr)->abandon(std::shared_ptr<HierarchicalTransfer>(this));
  }

 private:
  int places() const { return lane_.places_; }
  int hosts() const { return lane_.hosts_; }
  std::size_t bytes(std::int64_t count) const { return static_cast<std::size_t>(count) * size_of(call_.dtype); }
  const std::byte* in(std::int64_t at = 0) const { return static_cast<const std::byte*>(call_.in) + bytes(at); }
  std::byte* out(std::int64_t at = 0) const { return static_cast<std::byte*>(call_.out) + bytes(at); }

  Task run() {
    switch (call_.op) {
      case Op::all_reduce: co_await all_reduce(); break;
      case Op::reduce_scatter: co_await reduce_scatter(); break;
      case Op::all_gather: co_await all_gather(); break;
      case Op::broadcast: co_await broadcast(); break;
      default: co_await all_to_all(); break;
    }
  }

  /// Prepares the call of a phase.
  Call& phase(Op op, const void* from, std::int64_t in_count, void* to, std::int64_t out_count, int root = 0) {
    part_ = Call{};
    part_.op = op;
    part_.dtype = call_.dtype;
    part_.reduce = call_.reduce;
    part_.memory = call_.memory;
    part_.deterministic = call_.deterministic;
    part_.root = root;
    part_.in = from;
    part_.in_count = in_count;
    part_.out = to;
    part_.out_count = out_count;
    return part_;
  }
  auto over(Lane& lane) {
    at_ = &lane;
    inner_ = lane.start(part_);
    return until([this] {
      if (!inner_) return true;
      at_->progress();   // the event_count for a collective does not check whether its phases are filled in
      const Poll seen = inner_->poll();
      moved_ = moved_ || seen == Poll::moved;
      if (seen != Poll::complete) return false;
      std::exchange(inner_, nullptr)->release();
      return true;
    });
  }
  auto inside() { return over(*lane_.parts_.inside); }
  auto between() {
    if (reduces(part_.op) && lane_.parts_.own_reductions) part_.algorithm = choose(part_, hosts()).name;
    return over(*lane_.parts_.between);
  }

  /// Splits a tensor into one slice for each local rank of a host.
  void slice(std::int64_t count) {
    counts_.clear(), offsets_.clear();
    for (int p = 0; p < places(); ++p) {
      offsets_.push_back(count * p / places());
      counts_.push_back(count * (p + 1) / places() - offsets_.back());
    }
  }
  std::int64_t own_count() const { return counts_[static_cast<std::size_t>(lane_.place_)]; }
  std::int64_t own_offset() const { return offsets_[static_cast<std::size_t>(lane_.place_)]; }
  void gather_slices(std::byte* whole, std::int64_t count) {
    Call& call = phase(Op::all_gatherv, whole + bytes(own_offset()), own_count(), whole, count);
    call.out_counts = counts_.data();
    call.out_offsets = offsets_.data();
  }

  Task all_reduce();
  Task reduce_scatter();
  Task all_gather();
  Task broadcast();
  Task all_to_all();
  void by_place(std::byte* to, const std::byte* from, std::int64_t part) const;
  void by_host(std::byte* to, const std::byte* from, std::int64_t part) const;
  std::byte* room(Scratch& scratch, std::int64_t count) const { return (scratch = Scratch(bytes(count))).data(); }

  HierarchicalLane& lane_;
  Call call_;
  Call part_;                            ///< of the current phase
  std::vector<std::int64_t> counts_, offsets_, sent_;
  Scratch first_, second_;
  Lane* at_ = nullptr;                   ///< the lane of the current phase
  Transfer* inner_ = nullptr;
  bool moved_ = false;
  bool complete_ = false;
  std::shared_ptr<const void> memory_;   ///< what the call points to, for an abandoned transfer
  Task task_;
};

}  // namespace medley::algorithms
