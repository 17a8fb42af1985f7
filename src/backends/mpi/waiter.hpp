// How a thread waits for MPI, which can only be polled: spin, yield the core, then naps short enough not to
// hold up what MPI moves only while it is polled.
#pragma once

#include <medley/backend.hpp>

namespace medley::mpi {

class MpiWaiter final : public Waiter {
 public:
  explicit MpiWaiter(bool crowded) : crowded_(crowded) {}
  int spins() const override { return crowded_ ? 0 : 200; }
  int yields() const override { return crowded_ ? 200 : 2000; }
  bool crowded() const override { return crowded_; }
  std::uint32_t prepare() override { return 0; }
  void sleep(std::uint32_t ticket, std::chrono::nanoseconds at_most) override;
  void cancel() override {}
  void wake_own() noexcept override {}  // naps end soon by themselves

 private:
  bool crowded_;
};

}  // namespace medley::mpi
