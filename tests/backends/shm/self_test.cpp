// Messages of a rank to itself.
#include "backends/shm/job.hpp"

namespace medley::test {
namespace {

void large_message_to_itself(bool direct_reads) {
  Job::Options options;
  options.direct_reads = direct_reads;
  Job job(
      1,
      [](int, const Job::Start& start) {
        Context context = start();
        Comm world = context.world();
        std::vector<std::int32_t> given(1'000'000), taken(given.size(), -1);
        for (std::size_t i = 0; i < given.size(); ++i) given[i] = static_cast<std::int32_t>(i);
        Work sent = world.send(given, 0, {.async = true});
        world.recv(taken, 0);
        sent.wait();
        EXPECT_EQ(taken, given);
      },
      options);
  expect_success(job.wait(0), 0);
}

TEST(ToItself, ALargeMessageArrives) { large_message_to_itself(true); }

/// As in containers whose seccomp filter forbids process_vm_readv.
TEST(ToItself, ALargeMessageArrivesWithoutDirectReads) { large_message_to_itself(false); }

}  // namespace
}  // namespace medley::test
