// A rank that dies or stops, before, inside and after every kind of exchange: all others must get an error that names
// it.
#include "backends/shm/job.hpp"
#include "backends/shm/ways.hpp"

namespace medley::test {
namespace {

constexpr int ranks = 3, victim = 1;

void finish(std::vector<Work>& works) {
  for (Work& work : works) work.wait();
}

struct Case {
  Way way;
  std::size_t bytes;
  bool direct;
};

std::string label(const testing::TestParamInfo<Case>& info) {
  return way_names[static_cast<int>(info.param.way)] + std::to_string(info.param.bytes) +
         (info.param.direct ? "" : "WithoutDirectReads");
}

class Loss : public testing::TestWithParam<Case> {
 protected:
  /// Two operations; the victim dies in the second after `polls` polls of it (-1: before it, -2: after it).
  void kill_after(int polls) {
    const Case& c = GetParam();
    Job::Options options;
    options.direct_reads = c.direct;
    Job job(
        ranks,
        [&](int rank, const Job::Start& start_context) {
          Context context = start_context();
          Comm world = context.world();
          std::vector<float> in(std::max<std::size_t>(c.bytes / sizeof(float), ranks) / ranks * ranks, 1.0f), out(in);
          auto first = start(world, c.way, victim, in, out);
          finish(first);
          world.barrier();
          if (rank == victim && polls == -1) raise(SIGKILL);
          auto second = start(world, c.way, victim, in, out);
          if (rank == victim && polls >= 0) {
            for (int i = 0; i < polls; ++i) second.front().test();
            raise(SIGKILL);
          }
          finish(second);
          if (rank == victim) raise(SIGKILL);
          world.barrier();  // what does not need the victim may succeed, this cannot
        },
        options);
    for (int rank = 0; rank < ranks; ++rank) {
      const Ending ending = job.wait(rank);
      if (rank != victim) expect_error(ending, ErrorKind::rank_lost, {victim}, rank);
    }
  }
};

TEST_P(Loss, BeforeAnOperationIsToldToAll) { kill_after(-1); }
TEST_P(Loss, AtTheStartOfAnOperationIsToldToAll) { kill_after(0); }
TEST_P(Loss, InsideAnOperationIsToldToAll) {
  kill_after(1);
  kill_after(4);
}
TEST_P(Loss, AfterAnOperationIsToldToAll) { kill_after(-2); }

INSTANTIATE_TEST_SUITE_P(Small, Loss,
                         testing::Values(Case{Way::all_reduce, 8, true}, Case{Way::broadcast, 8, true},
                                         Case{Way::messages, 8, true}),
                         label);
INSTANTIATE_TEST_SUITE_P(Staged, Loss,
                         testing::Values(Case{Way::all_reduce, 32 << 10, true}, Case{Way::broadcast, 200 << 10, false},
                                         Case{Way::two_shots, 200 << 10, true}, Case{Way::gather, 32 << 10, true}),
                         label);
INSTANTIATE_TEST_SUITE_P(Direct, Loss,
                         testing::Values(Case{Way::all_reduce, 6 << 20, true}, Case{Way::broadcast, 6 << 20, true},
                                         Case{Way::all_to_all, 6 << 20, true}, Case{Way::reduce_scatter, 6 << 20, true},
                                         Case{Way::messages, 6 << 20, true}),
                         label);
INSTANTIATE_TEST_SUITE_P(Streamed, Loss,
                         testing::Values(Case{Way::all_reduce, 6 << 20, false}, Case{Way::broadcast, 6 << 20, false},
                                         Case{Way::all_to_all, 6 << 20, false}, Case{Way::gather, 6 << 20, false},
                                         Case{Way::two_shots, 6 << 20, true}, Case{Way::two_shots, 6 << 20, false},
                                         Case{Way::messages, 6 << 20, false}),
                         label);

TEST(Loss, WhileACommIsMadeIsToldToAll) {
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

class Stop : public testing::TestWithParam<Case> {};

// The deadline of a second begins with an operation that the stopped rank has not yet entered.
TEST_P(Stop, IsATimeoutThatNamesTheStoppedRank) {
  const Case& c = GetParam();
  Job::Options options;
  options.direct_reads = c.direct;
  Job job(
      ranks,
      [&](int rank, const Job::Start& start_context) {
        Context context = start_context();
        Comm world = context.world();
        std::vector<float> in(std::max<std::size_t>(c.bytes / sizeof(float), ranks) / ranks * ranks, 1.0f), out(in);
        world.barrier();
        if (rank == victim) raise(SIGSTOP);
        auto works = start(world, c.way, victim, in, out);
        for (Work& work : works) work.wait(std::chrono::seconds(1));
        world.barrier({.deadline = std::chrono::seconds(1)});
      },
      options);
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank != victim) expect_error(job.wait(rank), ErrorKind::timeout, {victim}, rank);
  }
  kill(job.process(victim), SIGCONT);  // it finds the comm aborted, and never accepts what it reads as valid
  const Ending late = job.wait(victim);
  EXPECT_FALSE(late.hung);
  EXPECT_TRUE(late.kind.has_value() && (*late.kind == ErrorKind::timeout || *late.kind == ErrorKind::rank_lost))
      << late.status << ' ' << late.what;
}

INSTANTIATE_TEST_SUITE_P(All, Stop,
                         testing::Values(Case{Way::all_reduce, 8, true}, Case{Way::all_reduce, 32 << 10, true},
                                         Case{Way::all_reduce, 6 << 20, true}, Case{Way::all_to_all, 6 << 20, false}),
                         label);

// A giver whose reader has arrived but stops reading.
TEST(Stop, InTheMiddleOfADirectReadIsATimeoutThatNamesTheReader) {
  Job job(2, [&](int rank, const Job::Start& start_context) {
    Context context = start_context();
    Comm world = context.world();
    std::vector<float> data(16 << 20, 1.0f);
    world.barrier();
    Work work = world.broadcast(data, 0, {.async = true});
    if (rank == 1) {
      work.test();  // it arrives and reads a part
      raise(SIGSTOP);
    }
    work.wait(std::chrono::seconds(1));
  });
  expect_error(job.wait(0), ErrorKind::timeout, {1}, 0);
}

}  // namespace
}  // namespace medley::test
