// A backend whose messages take as long as the test says: its receives complete no sooner than `delay_us` after they
// were posted, by the sender: from rank r it is r + 1 times that. Compiled under two names, each with its own delay.
#include <atomic>
#include <chrono>

#include "backends/over_shm.hpp"

using namespace medley;

/// Set by the test, which finds it by its name; relaxed there and here: a number alone.
extern "C" __attribute__((visibility("default"))) std::atomic<int> delay_us;
std::atomic<int> delay_us{0};

namespace {

using std::chrono::steady_clock;

class Delayed final : public Transfer {
 public:
  Delayed(Transfer* inner, steady_clock::time_point until) : inner_(inner), until_(until) {}
  Poll poll() override {
    if (!received_) received_ = inner_->poll() == Poll::complete;
    return received_ && steady_clock::now() >= until_ ? Poll::complete : Poll::waiting;
  }
  std::vector<int> awaited() const override { return inner_->awaited(); }
  int source() const override { return inner_->source(); }
  void release() noexcept override { inner_->release(), delete this; }
  void abandon(std::shared_ptr<const void> memory) noexcept override {
    inner_->abandon(std::move(memory)), delete this;
  }

 private:
  Transfer* inner_;
  steady_clock::time_point until_;
  bool received_ = false;
};

class DelayingLane final : public test::MailLane {
 public:
  static constexpr std::string_view name = MEDLEY_DELAYS;
  using MailLane::MailLane;
  Transfer* start(const Call& call) override {
    Transfer* const transfer = mail_->start(call);
    const std::chrono::microseconds delay(delay_us.load(std::memory_order_relaxed));  // relaxed: as above
    if (call.op != Op::recv || delay.count() == 0 || !transfer) return transfer;
    return new Delayed(transfer, steady_clock::now() + delay * (1 + call.root % 3));
  }
};

}  // namespace

extern "C" const medley::BackendPlugin* medley_backend() { return test::OverShm<DelayingLane>::plugin(); }
