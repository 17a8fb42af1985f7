// The lane of a split such as shm|ucx: one private lane of each library. Both parts of a collective start when it does,
// so that all ranks start the collectives of each library in the same order.
#pragma once

#include <array>
#include <medley/backend.hpp>
#include <memory>
#include <utility>

#include "algorithms/orphans.hpp"

namespace medley::algorithms {

class MEDLEY_API SplitLane final : public Lane {
 public:
  struct Lanes {
    std::unique_ptr<Lane> first, second;
    /// On CUDA memory: where a barrier without a stream runs (part of one of them)
    Lane* on_host = nullptr;
    /// Whether reductions use Medley's algorithms although the library has its own
    std::array<bool, 2> own_reductions{};
    bool on_device = false;
  };
  SplitLane(Lanes lanes, int ranks) : lanes_(std::move(lanes)), ranks_(ranks) {}

  Transfer* start(const Call& call) override;
  void progress() override;
  bool undelivered() const override { return lanes_.first->undelivered() || lanes_.second->undelivered(); }
  bool concurrent_collectives() const override {
    return lanes_.first->concurrent_collectives() && lanes_.second->concurrent_collectives();
  }
  /// A fused collective is small, so it is not divided.
  bool takes_lists() const override { return lanes_.on_device; }
  void check() override;
  void abort(const Error& why) noexcept override;
  bool poll_abort() noexcept override;
  bool poll_close() noexcept override;

 private:
  Transfer* start_part(const Call& call, bool second);

  Lanes lanes_;
  int ranks_;
  Orphans orphans_;
};

}  // namespace medley::algorithms
