// Memory that operations recycle for later ones.
#include <medley/sdk/recycled.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace medley::core {
namespace {

struct Base {
  virtual ~Base() = default;
};
struct Thing final : Base, Recycled<Thing> {
  int value = 7;
};

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(Recycled, the_next_one_takes_what_the_last_one_left) {
  auto* const first = new Thing;
  const void* const place = first;
  delete static_cast<Base*>(first);
  const std::unique_ptr<Thing> second(new Thing);
  EXPECT_EQ(second.get(), place);
}
#endif

TEST(Recycled, every_object_is_made_anew) {
  auto first = std::make_unique<Thing>();
  first->value = 8;
  first.reset();
  EXPECT_EQ(std::unique_ptr<Thing>(new Thing)->value, 7);
}

TEST(Recycled, more_than_are_kept_may_be_alive_and_go) {
  for (int round = 0; round < 3; ++round) {
    std::vector<std::unique_ptr<Thing>> alive;
    for (int i = 0; i < 1000; ++i) alive.push_back(std::make_unique<Thing>());
    for (std::size_t i = 0; i < alive.size(); ++i) alive[i]->value = static_cast<int>(i);
    for (std::size_t i = 0; i < alive.size(); ++i) ASSERT_EQ(alive[i]->value, static_cast<int>(i));
  }
}

TEST(Recycled, another_thread_may_end_what_one_has_made) {
  std::vector<std::unique_ptr<Thing>> made;
  for (int i = 0; i < 100; ++i) made.push_back(std::make_unique<Thing>());
  std::thread([&made] { made.clear(); }).join();  // the thread keeps some blocks and frees them when it ends
  std::thread([&made] {
    for (int i = 0; i < 100; ++i) made.push_back(std::make_unique<Thing>());
  }).join();
  EXPECT_EQ(made.size(), 100u);
}

/// Destroyed at the end of its thread, after the thread's recycled blocks.
struct Last {
  std::unique_ptr<Thing> held;
};

TEST(Recycled, what_goes_after_its_threads_memory_goes_too) {
  std::thread([] {
    thread_local Last last;  // constructed first, so destroyed last
    last.held = std::make_unique<Thing>();
    EXPECT_EQ(last.held->value, 7);
  }).join();
}

}  // namespace
}  // namespace medley::core
