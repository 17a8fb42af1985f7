// A stream-ordered lane (nccl) with compressed collectives: kernels encode into device memory, the library moves the
// bytes, kernels decode, all in streams. The context wraps every stream-ordered lane in one; everything else passes
// through.
#pragma once

#include <medley/backend.hpp>
#include <medley/sdk/device.hpp>
#include <memory>
#include <vector>

#include "algorithms/filled_lane.hpp"

namespace medley::core {

class StreamCompression;

class StreamLane final : public Lane {
 public:
  /// `device`: set before the first operation; outlives the lane.
  StreamLane(std::unique_ptr<algorithms::FilledLane> inner, const std::shared_ptr<Device>& device, int rank, int ranks)
      : inner_(std::move(inner)), device_(device), rank_(rank), ranks_(ranks) {}
  ~StreamLane() override;

  Transfer* start(const Call& call) override;
  void progress() override { inner_->progress(); }
  bool undelivered() const override { return inner_->undelivered(); }
  bool concurrent_collectives() const override { return inner_->concurrent_collectives(); }
  bool in_streams() const override { return inner_->in_streams(); }
  bool takes_lists() const override { return inner_->takes_lists(); }
  void check() override { inner_->check(); }
  void abort(const Error& why) noexcept override;
  bool poll_abort() noexcept override;
  bool poll_close() noexcept override;

 private:
  friend class StreamCompression;
  void abandon_orphans() noexcept;

  std::unique_ptr<algorithms::FilledLane> inner_;
  const std::shared_ptr<Device>& device_;
  int rank_, ranks_;
  void* stream_ = nullptr;                   ///< of its kernels, made by the first compressed collective
  std::vector<StreamCompression*> orphans_;  ///< that ended before their phases, until the lane is aborted
  void* last_event_ = nullptr;               ///< in an abort: behind all its kernels
  Deadline kernel_limit_{};
  bool closing_ = false;
};

}  // namespace medley::core
