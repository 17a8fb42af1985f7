// A rank that leaves in order while others use ucx: what it sent arrives, and ranks that still await it get an error.
#include "backends/shm/job.hpp"

namespace medley::test {
namespace {

// A small send completes for its caller at once; it arrives though its sender exits right away.
TEST(UcxDeparture, AMessageArrivesThoughItsSenderEndsAtOnce) {
  Job job(2, [&](int rank, const Job::Start& start_context) {
    Context context = start_context();
    Comm world = context.world();
    std::int32_t value = 41 + rank;
    if (rank == 0) {
      world.send(ConstBuffer(&value, 1, DType::i32), 1);
      return;
    }
    usleep(100'000);  // in most runs the sender has exited long ago
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
