// One collective made of several that run at the same time, each a part of its tensor: complete when all are. Used by
// splits (two libraries) and by hierarchical backends (segments of a large tensor).
#pragma once

#include <algorithm>
#include <medley/backend.hpp>
#include <memory>
#include <vector>

#include "algorithms/orphans.hpp"
#include "algorithms/running_transfers.hpp"

namespace medley::algorithms {

/// The part of a call on [at, at + count) of its elements, for operations that divisible() names.
inline Call part_of(const Call& call, std::int64_t at, std::int64_t count) {
  Call part = call;
  const std::size_t bytes = static_cast<std::size_t>(at) * size_of(call.dtype);
  if (call.in) {
    part.in = static_cast<const std::byte*>(call.in) + bytes;
    part.in_count = count;
  }
  if (call.out) {
    part.out = static_cast<std::byte*>(call.out) + bytes;
    part.out_count = count;
  }
  return part;
}

class JoinedTransfer final : public Transfer {
 public:
  /// `orphans`: the lane's. `progressed`: a lane whose progress() the parts need and do not call themselves; the engine
  /// does so only for messages and for what it has filled in itself.
  explicit JoinedTransfer(Orphans& orphans, Lane* progressed = nullptr) : orphans_(orphans), progressed_(progressed) {}
  ~JoinedTransfer() override = default;  // uses no lane

  /// `part`: null if it was complete at once.
  void add(Transfer* part, bool in_stream = false) {
    parts_.add(part);
    if (in_stream) streamed_ = part;
  }
  bool done() const { return parts_.empty(); }

  Poll poll() override {
    bool moved = false;
    if (progressed_) progressed_->progress();
    if (parts_.poll(moved)) return Poll::complete;
    return moved ? Poll::moved : Poll::waiting;
  }
  std::vector<int> awaited() const override {
    std::vector<int> ranks;
    for (const Transfer* part : parts_.list()) {
      for (const int rank : part->awaited()) ranks.push_back(rank);
    }
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    return ranks;
  }
  /// A part that the host stages launches nothing in a stream.
  bool launched() override {
    const auto& left = parts_.list();
    return !streamed_ || std::find(left.begin(), left.end(), streamed_) == left.end() || streamed_->launched();
  }
  bool order(void* stream) override { return parts_.order(stream); }
  void release() noexcept override {
    if (parts_.empty()) {
      delete this;
    } else {
      orphans_.add(this);
    }
  }
  /// `memory` has one owner, whom all parts share.
  void abandon(std::shared_ptr<const void> memory) noexcept override {
    parts_.abandon(memory);
    delete this;
  }

 private:
  Orphans& orphans_;
  Lane* progressed_;
  RunningTransfers parts_;
  Transfer* streamed_ = nullptr;  ///< the part that launches in a stream, if any
};

}  // namespace medley::algorithms
