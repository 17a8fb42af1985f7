// Deadlines and aborts: when a rank does not take part, the others get an error that names it, never a hang.
#include <algorithm>

#include "conformance/errors.hpp"
#include "conformance/run_case.hpp"

namespace medley::conformance {
namespace {

using namespace std::chrono_literals;

void expect_names(const std::optional<Error>& error, ErrorKind kind, int rank, const Comm& comm, const char* op) {
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), kind) << error->what();
  const auto& ranks = error->context().ranks;
  EXPECT_NE(std::find(ranks.begin(), ranks.end(), rank), ranks.end())
      << "rank " << rank << " is not named: " << error->what();
  const std::string text = error->what();
  EXPECT_NE(text.find(op), std::string::npos) << text;
  EXPECT_NE(text.find("comm " + comm.name()), std::string::npos) << text;
}

/// Every rank but the last runs `call` on a comm; the last one joins only after all have had their error.
template <class Call>
void without_the_last_rank(int size, Call call) {
  with_ranks(size, [&](Comm& comm) {
    Comm victim = comm.dup();
    if (comm.rank() != size - 1) call(victim);
    comm.barrier();
  });
}

TEST(Deadline, a_collective_names_the_rank_that_is_missing) {
  without_the_last_rank(3, [](Comm& comm) {
    std::vector<float> values(10, 1.0f);
    // The second rank may learn of the deadline from the first. Both name the missing rank, even when the
    // collective is filled in and a rank waits for one that itself waits for the missing one.
    expect_names(error_of([&] { comm.all_reduce(values, sum, {.deadline = 50ms}); }), ErrorKind::timeout, 2, comm,
                 "all_reduce");
  });
}

TEST(Deadline, a_large_collective_names_the_rank_that_is_missing) {
  without_the_last_rank(2, [](Comm& comm) {
    std::vector<float> values(1 << 20, 1.0f);
    Work work = comm.all_reduce(values, sum, {.async = true});
    expect_names(error_of([&] { work.wait(50ms); }), ErrorKind::timeout, 1, comm, "all_reduce");
    ASSERT_NE(work.error(), nullptr);
    EXPECT_EQ(work.error()->kind(), ErrorKind::timeout);
    error_of([&] { work.test(); });
  });
}

TEST(Deadline, a_receive_names_its_source_and_a_large_send_its_destination) {
  without_the_last_rank(2, [](Comm& comm) {
    std::vector<float> values(1 << 20);
    Comm second = comm;
    expect_names(error_of([&] { second.recv(values, 1, {.deadline = 30ms}); }), ErrorKind::timeout, 1, comm, "recv");
  });
  without_the_last_rank(2, [](Comm& comm) {
    std::vector<float> values(1 << 20);
    expect_names(error_of([&] { comm.send(values, 1, {.deadline = 30ms}); }), ErrorKind::timeout, 1, comm, "send");
  });
  without_the_last_rank(2, [](Comm& comm) {
    std::vector<float> values(1 << 20), more(1 << 20);
    expect_names(error_of([&] { comm.sendrecv(values, 1, more, 1, {.deadline = 30ms}); }), ErrorKind::timeout, 1, comm,
                 "send");
  });
}

TEST(Deadline, a_failed_comm_refuses_what_follows_with_the_first_cause) {
  without_the_last_rank(2, [](Comm& comm) {
    error_of([&] { comm.barrier({.deadline = 20ms}); });
    const auto error = error_of([&] { comm.barrier(); });
    expect_names(error, ErrorKind::timeout, 1, comm, "barrier");
    EXPECT_NE(std::string(error->what()).find("failed earlier"), std::string::npos) << error->what();
  });
}

TEST(Deadline, making_a_comm_names_the_rank_that_is_missing) {
  if (kind_of_ranks() == "launched") GTEST_SKIP() << "the deadline of a context that a launcher placed is fixed";
  with_ranks(
      2,
      [](Comm& comm) {
        if (comm.rank() == 0) {
          const auto error = error_of([&] { comm.dup(); });
          ASSERT_TRUE(error);
          EXPECT_EQ(error->kind(), ErrorKind::timeout);
          EXPECT_EQ(error->context().ranks, std::vector<int>{1});
        }
        std::int32_t token = 0;
        if (comm.rank() == 0) comm.send(ConstBuffer(&token, 1, DType::i32), 1, {.deadline = 10s});
        if (comm.rank() == 1) comm.recv(Buffer(&token, 1, DType::i32), 0, {.deadline = 10s});
      },
      1500ms);
}

TEST(Deadline, of_any_length_is_a_deadline) {
  with_ranks(2, [](Comm& comm) {
    std::vector<float> values(10, 1.0f);
    Comm endless = comm.dup({.deadline = std::chrono::nanoseconds::max()});
    for (const auto length :
         {std::chrono::nanoseconds::max(), std::chrono::nanoseconds(std::chrono::hours(24 * 365 * 290L))}) {
      // One rank arrives later than the interval of deadline checks: the other must still be waiting.
      if (comm.rank() == 1) std::this_thread::sleep_for(60ms);
      comm.all_reduce(values, sum, {.deadline = length});
      Work first = comm.all_reduce(values, sum, {.async = true}),
           second = endless.all_reduce(values, sum, {.async = true});
      first.wait(length);
      second.wait_host(length);
      Work third = comm.all_reduce(values, sum, {.max_wait = length});
      EXPECT_TRUE(third.complete());
      EXPECT_TRUE(comm.barrier({.async = true}).wait_for(length));
    }
  });
}

TEST(Abort, gives_every_rank_an_error_that_names_who_aborted) {
  for (int size : {2, 4}) {
    with_ranks(size, [&](Comm& comm) {
      Comm victim = comm.dup();
      std::vector<float> values(20, 1.0f);
      if (comm.rank() == 0) {
        victim.abort();
        const auto error = error_of([&] { victim.barrier(); });
        ASSERT_TRUE(error);
        EXPECT_EQ(error->kind(), ErrorKind::aborted);
      } else {
        expect_names(error_of([&] { victim.all_reduce(values, sum); }), ErrorKind::aborted, 0, victim, "all_reduce");
      }
      comm.barrier();  // other comms are unaffected
    });
  }
}

TEST(Abort, of_a_comm_leaves_operations_alone_that_wait_for_the_same_memory_elsewhere) {
  with_ranks(2, [](Comm& comm) {
    Comm steady = comm.dup(), doomed = comm.dup();
    std::vector<float> values(1000, 1.0f);
    std::int32_t token = 0;
    if (comm.rank() == 0) {
      Work first = steady.all_reduce(values, sum, {.async = true});
      { Work blocked = doomed.all_reduce(values, sum, {.async = true}); }  // waits for `first`, then is given up
      doomed.abort();
      comm.send(ConstBuffer(&token, 1, DType::i32), 1);
      first.wait();
    } else {
      comm.recv(Buffer(&token, 1, DType::i32), 0);
      steady.all_reduce(values, sum);
    }
    EXPECT_EQ(values.front(), 2.0f);
    comm.barrier();
  });
}

TEST(Abort, by_a_third_rank_ends_a_large_receive_and_nothing_writes_to_its_memory_afterwards) {
  if (over_nccl() || !fills_in()) GTEST_SKIP() << "host memory alone";
  if (backend_under_test().find("mpi") != std::string::npos) GTEST_SKIP() << "MPI cannot cancel what has begun";
  with_ranks(3, [](Comm& comm) {
    Comm victim = comm.dup();
    victim.barrier();
    std::vector<float> values(24 << 20, 1.0f);
    std::int32_t token = 0;
    if (comm.rank() == 0) {
      Work work = victim.recv(values, 1, {.async = true});
      work.test();
      comm.send(ConstBuffer(&token, 1, DType::i32), 2);
      bool failed = false;
      try {
        work.wait();  // it may be complete before the abort
      } catch (const Error& error) {
        failed = true;
        EXPECT_EQ(error.kind(), ErrorKind::aborted) << error.what();
      }
      std::fill(values.begin(), values.end(), -1.0f);
      // What is still on its way arrives while this rank makes progress.
      Work last = comm.recv(Buffer(&token, 1, DType::i32), 2, {.async = true, .tag = 9});
      const auto until = std::chrono::steady_clock::now() + 200ms;
      while (failed && std::chrono::steady_clock::now() < until) last.test();
      comm.barrier();
      last.wait();
      EXPECT_EQ(std::count(values.begin(), values.end(), -1.0f), static_cast<std::ptrdiff_t>(values.size()));
    } else if (comm.rank() == 1) {
      try {
        victim.send(values, 0);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::aborted) << error.what();
      }
      comm.barrier();  // other comms go on
    } else {
      comm.recv(Buffer(&token, 1, DType::i32), 0);
      victim.abort();
      comm.barrier();
      comm.send(ConstBuffer(&token, 1, DType::i32), 0, {.tag = 9});
    }
  });
}

TEST(Departure, of_a_rank_that_is_done_does_not_disturb_the_others) {
  if (kind_of_ranks() != "processes") GTEST_SKIP() << "needs ranks that end at different times";
  with_ranks(3, [](Comm& comm) {
    std::vector<float> values(10, 1.0f);
    comm.all_reduce(values, sum);
    if (comm.rank() == 0) return;  // it has done its part and ends
    std::int32_t token = 7;
    if (comm.rank() == 1) {
      comm.recv(Buffer(&token, 1, DType::i32), 2);
      EXPECT_EQ(token, 8);
    } else {
      std::this_thread::sleep_for(300ms);  // work that takes longer than detecting an ended process
      token = 8;
      comm.send(ConstBuffer(&token, 1, DType::i32), 1);
    }
  });
}

}  // namespace
}  // namespace medley::conformance
