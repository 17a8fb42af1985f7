// The engine's lock excludes threads from each other, before, while and after its bias is revoked.
#include <medley/sdk/biased_lock.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace medley {
namespace {

TEST(BiasedLock, IsHeldByTheThreadThatLockedIt) {
  BiasedLock lock;
  EXPECT_FALSE(lock.held_here());
  lock.lock();
  EXPECT_TRUE(lock.held_here());
  std::thread([&lock] { EXPECT_FALSE(lock.held_here()); }).join();
  lock.unlock();
  EXPECT_FALSE(lock.held_here());
}

TEST(BiasedLock, AThreadThatRevokesTheBiasWaitsForTheOwnerAndSeesWhatItWrote) {
  BiasedLock lock;
  int guarded = 0;
  lock.lock();
  std::atomic<bool> trying{false};
  std::thread other([&] {
    trying = true;
    const std::lock_guard held(lock);
    EXPECT_EQ(guarded, 1);
    EXPECT_TRUE(lock.held_here());
    guarded = 2;
  });
  while (!trying) std::this_thread::yield();
  guarded = 1;
  lock.unlock();
  other.join();
  const std::lock_guard held(lock);
  EXPECT_EQ(guarded, 2);
}

TEST(BiasedLock, TheOwnerAndOthersThatJoinItNeverOverlap) {
  constexpr int rounds = 20'000;
  for (int repetition = 0; repetition < 20; ++repetition) {
    BiasedLock lock;
    long count = 0;  // plain: the lock alone protects it
    std::atomic<int> ready{0};
    const auto work = [&] {
      for (int i = 0; i < rounds; ++i) {
        const std::lock_guard held(lock);
        ++count;
      }
    };
    { const std::lock_guard held(lock); }  // this thread owns the bias
    std::vector<std::thread> others;
    for (int i = 0; i < 2; ++i) {
      others.emplace_back([&] {
        ++ready;
        work();
      });
    }
    while (ready == 0) {  // the owner is in and out while the others revoke
      const std::lock_guard held(lock);
      ++count, --count;
    }
    work();
    for (std::thread& other : others) other.join();
    const std::lock_guard held(lock);
    EXPECT_EQ(count, 3L * rounds);
  }
}

}  // namespace
}  // namespace medley
