// A rank that dies or stops while others use ucx: all of them are told, by kind and by rank.
#include "shm/job.hpp"

namespace medley::test {
namespace {

constexpr int ranks = 3, victim = 1;

enum class Way { all_reduce, broadcast, messages };

std::vector<Work> start(Comm& comm, Way way, std::vector<float>& in, std::vector<float>& out) {
  const int me = comm.rank(), n = comm.size();
  const Options later{.async = true};
  if (way == Way::all_reduce) return {comm.all_reduce(in, out, sum, later)};
  if (way == Way::broadcast) return {comm.broadcast(in, victim, later)};
  return {comm.recv(out, (me + n - 1) % n, later), comm.send(in, (me + 1) % n, later)};
}

struct Case {
  Way way;
  std::size_t bytes;
};

std::string label(const testing::TestParamInfo<Case>& info) {
  static const char* const ways[] = {"AllReduce", "Broadcast", "Messages"};
  return ways[static_cast<int>(info.param.way)] + std::to_string(info.param.bytes);
}

class UcxLoss : public testing::TestWithParam<Case> {
 protected:
  /// The victim dies in its second operation after `polls` looks at it (-1: before it, -2: after it).
  void kill_after(int polls) {
    const Case& c = GetParam();
    Job job(ranks, [&](int rank, const Job::Start& start_context) {
      Context context = start_context();
      Comm world = context.world();
      std::vector<float> in(c.bytes / sizeof(float), 1.0f), out(in);
      for (Work& work : start(world, c.way, in, out)) work.wait();
      world.barrier();
      if (rank == victim && polls == -1) raise(SIGKILL);
      auto second = start(world, c.way, in, out);
      for (int i = 0; rank == victim && i < polls; ++i) second.front().test();
      if (rank == victim && polls >= 0) raise(SIGKILL);
      for (Work& work : second) work.wait();
      if (rank == victim) raise(SIGKILL);
      world.barrier();  // what does not need the victim may succeed, this cannot
    });
    for (int rank = 0; rank < ranks; ++rank) {
      const Ending ending = job.wait(rank);
      if (rank != victim) expect_error(ending, ErrorKind::rank_lost, {victim}, rank);
    }
  }
};

TEST_P(UcxLoss, BeforeAnOperationIsToldToAll) {
  kill_after(-1);
}
TEST_P(UcxLoss, InsideAnOperationIsToldToAll) {
  kill_after(0);
  kill_after(3);
}
TEST_P(UcxLoss, AfterAnOperationIsToldToAll) {
  kill_after(-2);
}

INSTANTIATE_TEST_SUITE_P(All, UcxLoss,
                         testing::Values(Case{Way::all_reduce, 8}, Case{Way::all_reduce, 6 << 20},
                                         Case{Way::broadcast, 64 << 10}, Case{Way::messages, 8},
                                         Case{Way::messages, 6 << 20}),
                         label);

TEST(UcxLoss, WhileACommIsMadeIsToldToAll) {
  Job job(ranks, [&](int rank, const Job::Start& start_context) {
    Context context = start_context();
    Comm world = context.world();
    world.barrier();
    if (rank == victim) raise(SIGKILL);
    world.dup();
  });
  for (int rank = 0; rank < ranks; ++rank) {
    const Ending ending = job.wait(rank);
    if (rank != victim) expect_error(ending, ErrorKind::rank_lost, {victim}, rank);
  }
}

class UcxStop : public testing::TestWithParam<Case> {};

// Survivors name whom they await: the stopped rank, or one that awaits it.
TEST_P(UcxStop, IsATimeoutWithinTheDeadline) {
  const Case& c = GetParam();
  Job job(ranks, [&](int rank, const Job::Start& start_context) {
    Context context = start_context();
    Comm world = context.world();
    std::vector<float> in(c.bytes / sizeof(float), 1.0f), out(in);
    world.barrier();
    if (rank == victim) raise(SIGSTOP);
    for (Work& work : start(world, c.way, in, out)) work.wait(std::chrono::seconds(1));
    world.barrier({.deadline = std::chrono::seconds(1)});
  });
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == victim) continue;
    const Ending ending = job.wait(rank);
    EXPECT_FALSE(ending.hung) << "rank " << rank;
    ASSERT_TRUE(ending.kind.has_value()) << "rank " << rank << " ended with " << ending.status;
    EXPECT_STREQ(name(*ending.kind), name(ErrorKind::timeout)) << ending.what;
    EXPECT_FALSE(ending.ranks.empty()) << ending.what;
  }
  kill(job.process(victim), SIGCONT);  // it finds the comm given up
  const Ending late = job.wait(victim);
  EXPECT_FALSE(late.hung);
  EXPECT_TRUE(late.kind.has_value()) << late.status;
}

INSTANTIATE_TEST_SUITE_P(All, UcxStop,
                         testing::Values(Case{Way::all_reduce, 8}, Case{Way::all_reduce, 6 << 20},
                                         Case{Way::messages, 6 << 20}),
                         label);

// A small send is complete for its caller at once; it arrives though its sender ends right away.
TEST(UcxDeparture, AMessageArrivesThoughItsSenderEndsAtOnce) {
  Job job(2, [&](int rank, const Job::Start& start_context) {
    Context context = start_context();
    Comm world = context.world();
    std::int32_t value = 41 + rank;
    if (rank == 0) {
      world.send(ConstBuffer(&value, 1, DType::i32), 1);
      return;
    }
    usleep(100'000);  // the sender has long ended, in most runs
    world.recv(Buffer(&value, 1, DType::i32), 0);
    EXPECT_EQ(value, 41);
  });
  expect_success(job.wait(0), 0);
  expect_success(job.wait(1), 1);
}

TEST(UcxDeparture, OfAnAwaitedRankIsToldAsItsLoss) {
  Job job(2, [&](int rank, const Job::Start& start_context) {
    Context context = start_context();
    Comm world = context.world();
    world.barrier();
    std::int32_t value = 0;
    if (rank == 1) world.recv(Buffer(&value, 1, DType::i32), 0);
  });
  expect_success(job.wait(0), 0);
  expect_error(job.wait(1), ErrorKind::rank_lost, {0}, 1);
}

}  // namespace
}  // namespace medley::test
