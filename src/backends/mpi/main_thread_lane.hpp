// A lane for an MPI initialised below MPI_THREAD_SERIALIZED: only the thread that initialised it may call it.
// Operations started by other threads wait, in order, for that thread's next call of Medley.
#pragma once

#include <deque>
#include <medley/backend.hpp>
#include <memory>

#include "backends/mpi/lane.hpp"

namespace medley::mpi {

class WaitingTransfer;

class MainThreadLane final : public Lane {
 public:
  explicit MainThreadLane(std::unique_ptr<MpiLane> lane) : lane_(std::move(lane)) {}
  Transfer* start(const Call& call) override;
  void progress() override;
  bool undelivered() const override { return lane_->undelivered() || !waiting_.empty(); }
  void check() override { lane_->check(); }
  void abort(const Error& why) noexcept override { lane_->abort(why); }

 private:
  friend class WaitingTransfer;
  bool wrong_thread() const { return lane_->library().wrong_thread(); }
  std::unique_ptr<MpiLane> lane_;
  std::deque<WaitingTransfer*> waiting_;  ///< not started yet, in order
};

}  // namespace medley::mpi
