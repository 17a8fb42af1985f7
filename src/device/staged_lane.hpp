// A host backend's lane for CUDA memory: stages operations through pinned memory in pieces, so that copies to and from
// the device overlap the host's work. The context adds one to every lane of a host backend where there are devices.
#pragma once

#include <medley/backend.hpp>
#include <medley/sdk/device.hpp>
#include <memory>
#include <vector>

#include "algorithms/device_frames.hpp"
#include "algorithms/filled_lane.hpp"
#include "device/staged_plan.hpp"

namespace medley::core {

class StagedTransfer;

/// Driven by polling like every lane; nothing here waits for the device.
class StagedLane final : public Lane {
 public:
  /// `device`: set before the first operation; outlives the lane.
  StagedLane(std::unique_ptr<algorithms::FilledLane> inner, const std::shared_ptr<Device>& device, int rank, int ranks)
      : inner_(std::move(inner)), device_(device), rank_(rank), ranks_(ranks) {}
  ~StagedLane() override;

  Transfer* start(const Call& call) override;
  void progress() override { inner_->progress(); }
  bool undelivered() const override { return inner_->undelivered(); }
  bool concurrent_collectives() const override { return inner_->concurrent_collectives(); }
  bool takes_lists() const override { return true; }
  void check() override { inner_->check(); }
  void abort(const Error& why) noexcept override;
  bool poll_abort() noexcept override;
  bool poll_close() noexcept override;

 private:
  friend class StagedTransfer;
  struct PinnedPiece;
  /// An abandoned piece: its host operation and its copies may still use its pinned memory.
  struct Orphan {
    Transfer* transfer;
    void* event;
    std::shared_ptr<PinnedPiece> piece;
  };
  bool give_up(Orphan& orphan) noexcept;
  bool abandon_orphans() noexcept;

  bool compresses_on_device(const Call& call) const;

  std::unique_ptr<algorithms::FilledLane> inner_;
  const std::shared_ptr<Device>& device_;
  int rank_, ranks_;
  void* to_host_ = nullptr;  ///< streams for copies only, created by the first operation
  void* to_device_ = nullptr;
  /// Created by the first collective that is compressed on the device
  std::shared_ptr<algorithms::DeviceFrames> frames_;
  std::vector<StagedTransfer*> running_;
  std::vector<Orphan> orphans_;
  Deadline copy_limit_{};  ///< for copies that were pending at the abort
  bool closing_ = false;
};

}  // namespace medley::core
