// Backoff for backends that can only be polled: spin, yield the core, then naps short enough not to delay transfers
// that progress only while they are polled. Used by mpi and by hierarchical backends.
#pragma once

#include <algorithm>
#include <thread>

#include <medley/sdk/backoff_policy.hpp>
#include <medley/sdk/may_block.hpp>

namespace medley {

class PolledEventCount final : public EventCount {
 public:
  explicit PolledEventCount(const BackoffPolicy& policy) : policy_(policy) {}
  int spins() const override { return policy_.spins; }
  int yields() const override { return policy_.yields; }
  bool oversubscribed() const override { return policy_.oversubscribed; }
  std::uint32_t prepare() override { return 0; }
  void sleep(std::uint32_t, std::chrono::nanoseconds at_most) override {
    may_block("its nap");
    // A large transfer takes tens of round trips, each of which may wait for a peer's nap.
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(at_most, std::chrono::microseconds(50)));
  }
  void cancel() override {}
  void wake_own() noexcept override {}  // naps end soon by themselves

 private:
  BackoffPolicy policy_;
};

}  // namespace medley
