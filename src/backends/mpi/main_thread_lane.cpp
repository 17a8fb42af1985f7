#include "backends/mpi/main_thread_lane.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace medley::mpi {

/// An operation of another thread, before and after the MPI thread has started it.
class WaitingTransfer final : public Transfer {
 public:
  WaitingTransfer(MainThreadLane& lane, const Call& call) : lane_(lane), call_(call) {}

  Poll poll() override {
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    if (!started_ || (inner_ && lane_.wrong_thread())) return Poll::waiting;
    return inner_ ? inner_->poll() : Poll::complete;
  }
  std::vector<int> awaited() const override { return inner_ ? inner_->awaited() : std::vector<int>{}; }
  int source() const override { return inner_ ? inner_->source() : -1; }
  std::int64_t received() const override { return inner_ ? inner_->received() : -1; }
  void release() noexcept override {
    std::erase(lane_.waiting_, this);
    if (inner_) inner_->release();
    delete this;
  }
  void abandon(std::shared_ptr<const void> memory) noexcept override {
    if (inner_) std::exchange(inner_, nullptr)->abandon(std::move(memory));
    release();
  }

  void start(MpiLane& lane) noexcept {
    started_ = true;
    try {
      inner_ = lane.start(call_);
    } catch (...) {
      error_ = std::current_exception();
    }
  }

 private:
  MainThreadLane& lane_;
  Call call_;
  bool started_ = false;
  Transfer* inner_ = nullptr;
  std::exception_ptr error_;
};

Transfer* MainThreadLane::start(const Call& call) {
  auto* transfer = new WaitingTransfer(*this, call);
  waiting_.push_back(transfer);
  progress();
  return transfer;
}

void MainThreadLane::progress() {
  if (wrong_thread()) return;
  while (!waiting_.empty()) {
    WaitingTransfer* next = waiting_.front();
    waiting_.pop_front();
    next->start(*lane_);
  }
  lane_->progress();
}

}  // namespace medley::mpi
