// Device times in a trace: over mocks of CUDA and NCCL, or over the real ones if MEDLEY_BACKEND_PATH names
// them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "conformance/device_memory.hpp"
#include "harness/ranks.hpp"
#include "trace/trace.hpp"

namespace medley {
namespace {

using namespace std::chrono_literals;
using trace::Event;

constexpr double ms = 1e6;
constexpr auto lateness = 240ms;  // long compared with an operation on a busy machine
constexpr double much = 160 * ms;

/// The operations of both ranks; rank 1 comes late to the first and the second. No stream waits for the
/// second, and the third has long completed when one does.
std::vector<std::vector<Event>> traced() {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("medley_times_" + std::to_string(getpid()));
  setenv("MEDLEY_CUDA", "1", 1);
  setenv("MEDLEY_BACKEND_PATH", MOCK_BACKENDS, 0);
  setenv("MEDLEY_TRACE", folder.c_str(), 1);
  test::run_processes(
      2,
      [](Context& context) {
        Comm world = context.world();
        conformance::DeviceImage image(4000);
        const Buffer numbers(image.data(), 1000, DType::f32, Memory::cuda, 0);
        const auto late = [&] {
          if (world.rank() == 1) std::this_thread::sleep_for(lateness);
        };
        // Connects first: the first operation would wait for that on the host, not on the device
        world.barrier(Memory::cuda).wait_host();
        late();
        world.all_reduce(numbers, sum, {.async = true}).wait();
        std::byte last{};
        conformance::test_device().copy_now(&last, image.data(), 1);
        late();
        Work second = world.all_reduce(numbers, sum, {.async = true});
        while (!second.complete()) std::this_thread::sleep_for(1ms);
        Work third = world.all_reduce(numbers, sum, {.async = true});
        std::this_thread::sleep_for(lateness);
        third.wait();
        third.wait_host();
        world.barrier().wait_host();
      },
      [](ContextOptions& options) {
        options.backends = {"nccl", "shm"};
        setenv("NCCL_HOSTID", ("rank" + std::to_string(options.rank)).c_str(), 1);
      });
  const trace::Trace read = trace::open_trace(folder.string());
  std::vector<std::vector<Event>> events(2);
  for (int rank = 0; rank < 2; ++rank) {
    read.rank(rank).for_each([&](const Event& event) {
      if (event.op == Op::all_reduce) events[static_cast<std::size_t>(rank)].push_back(event);
    });
  }
  std::filesystem::remove_all(folder);
  return events;
}

TEST(DeviceTimes, TellWhenAnOperationRanAndHowLongTheStreamStood) {
  const auto events = traced();
  for (const auto& rank : events) {
    ASSERT_EQ(rank.size(), 3u);
    for (const Event& event : rank) {
      EXPECT_TRUE(event.on_device);
      EXPECT_GE(event.started, event.issued - 0.5 * ms);  // within the precision of the clocks' alignment
      EXPECT_GE(event.completed, event.started);
    }
  }
  const auto& early = events[0];
  const auto& late = events[1];
  EXPECT_GT(early[0].duration(), much) << "its kernel waits for the late one";
  EXPECT_GT(early[0].exposed, much);
  EXPECT_LT(late[0].duration(), much);
  EXPECT_LT(late[0].exposed, much);
  EXPECT_NEAR(early[0].completed, late[0].completed, 20 * ms);
  EXPECT_GT(early[1].duration(), much);
  EXPECT_EQ(early[1].exposed, 0) << "nobody waited";
  EXPECT_LT(early[2].duration(), much) << "it was done long before the host asked";
  EXPECT_EQ(early[2].exposed, 0);
}

}  // namespace
}  // namespace medley
