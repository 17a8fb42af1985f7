// Ranks that leave in order, ranks that abort, and operations whose comm fails while others wait.
#include "backends/shm/job.hpp"

namespace medley::test {
namespace {

TEST(Departure, OfARankThatIsDoneDisturbsNobody) {
  const Shared<std::atomic<bool>> gone;
  Job job(3, [&](int rank, const Job::Start& start) {
    Context context = start();
    Comm world = context.world();
    int token[1] = {rank};
    world.barrier();
    if (rank == 2) {
      world.send(token, 0);
      return;
    }
    if (rank == 0) {
      while (!*gone) usleep(1000);
      world.recv(token, 2);  // it is in the pipe, though its sender is gone
      EXPECT_EQ(token[0], 2);
      world.send(token, 1);
    } else {
      world.recv(token, 0);  // waits all the time
      EXPECT_EQ(token[0], 2);
    }
  });
  expect_success(job.wait(2), 2);
  usleep(300'000);  // gives rank 1 time for the mistake: it checks for lost ranks every 20 ms
  *gone = true;
  expect_success(job.wait(0), 0);
  expect_success(job.wait(1), 1);
}

TEST(Departure, OfABroadcastsRootDisturbsNobody) {
  const Shared<std::atomic<bool>> gone;
  Job job(3, [&](int rank, const Job::Start& start) {
    Context context = start();
    Comm world = context.world();
    std::vector<float> data(1000, rank == 0 ? 5.0f : 0.0f);
    while (rank == 1 && !*gone) usleep(1000);
    world.broadcast(data, 0);
    EXPECT_EQ(data.back(), 5.0f);
    int token[1] = {1};
    if (rank == 1) world.send(token, 2);
    if (rank == 2) world.recv(token, 1);  // waits while the root is gone
  });
  expect_success(job.wait(0), 0);
  usleep(300'000);
  *gone = true;
  expect_success(job.wait(1), 1);
  expect_success(job.wait(2), 2);
}

TEST(Departure, OfAnAwaitedRankIsALoss) {
  for (const bool message : {false, true}) {
    Job job(3, [&](int rank, const Job::Start& start) {
      Context context = start();
      Comm world = context.world();
      world.barrier();
      if (rank == 2) return;
      int token[1] = {0};
      if (message) {
        world.recv(token, 2);
      } else {
        world.barrier();
      }
    });
    for (int rank : {0, 1}) expect_error(job.wait(rank), ErrorKind::rank_lost, {2}, rank);
    expect_success(job.wait(2), 2);
  }
}

TEST(Abort, IsAnErrorOnEveryOtherRank) {
  Job job(4, [&](int rank, const Job::Start& start) {
    Context context = start();
    Comm world = context.world();
    world.barrier();
    if (rank == 3) world.abort();
    world.barrier();
  });
  for (int rank = 0; rank < 4; ++rank) {
    const Ending ending = job.wait(rank);
    expect_error(ending, ErrorKind::aborted, {3}, rank);
    EXPECT_NE(ending.what.find("rank 3 called abort"), std::string::npos) << ending.what;
  }
}

TEST(Abort, OfOneCommLeavesTheOthersAlone) {
  run_processes(2, [](Context& context) {
    Comm world = context.world(), other = world.dup();
    std::vector<float> ones(100, 1.0f);
    if (other.rank() == 1) other.abort();
    EXPECT_THROW(other.barrier(), Error);
    world.all_reduce(ones, sum);
    EXPECT_EQ(ones.front(), 2.0f);
  });
}

// The waiting operation is complete and dropped before the one it waits for; only a sanitizer sees a later access to
// it.
TEST(Abort, OfAnOperationThatWaitsForAnotherComm) {
  run_threads(2, [](Context& context) {
    Comm world = context.world(), other = world.dup();
    std::vector<float> shared(64, 1.0f);
    if (world.rank() == 0) {
      Work first = world.recv(shared, 1, {.async = true});
      { Work second = other.all_reduce(shared, sum, {.async = true}); }
      other.abort();
      first.test();
      int go[1] = {1};
      world.send(go, 1, {.tag = 1});
      first.wait();
      EXPECT_EQ(shared.front(), 7.0f);
    } else {
      int go[1] = {0};
      world.recv(go, 0, {.tag = 1});
      shared.assign(64, 7.0f);
      world.send(shared, 0);
    }
  });
}

}  // namespace
}  // namespace medley::test
