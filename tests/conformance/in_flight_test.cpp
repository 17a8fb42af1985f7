// Several pending operations: on one comm and on many, waited for in another order, and on the same memory.
#include <algorithm>
#include <numeric>

#include "conformance/run_case.hpp"

namespace medley::conformance {
namespace {

class InFlight : public testing::TestWithParam<int> {};

Case nth_case(std::uint64_t i) {
  constexpr Op ops[] = {Op::all_reduce, Op::broadcast,       Op::all_to_all, Op::gather,      Op::all_gatherv,
                        Op::reduce,     Op::scatterv,        Op::all_gather, Op::all_to_allv, Op::reduce_scatter,
                        Op::barrier,    Op::reduce_scatterv, Op::scatter,    Op::gatherv};
  constexpr std::int64_t counts[] = {3, 2'000, 30'000, 1, 100'000};
  Case c{.op = ops[i % std::size(ops)], .count = counts[i % std::size(counts)], .in_place = i % 3 == 0, .seed = i + 1};
  return c;
}

TEST_P(InFlight, many_collectives_of_one_comm_may_be_waited_for_in_reverse) {
  with_ranks(GetParam(), [](Comm& comm) {
    std::vector<Trial> trials;
    for (std::uint64_t i = 0; i < 28; ++i) {
      Case c = nth_case(i);
      c.root = static_cast<int>(i) % comm.size();
      trials.emplace_back(comm, c);
    }
    for (Trial& trial : trials) trial.start(comm, {.async = true});
    for (auto trial = trials.rbegin(); trial != trials.rend(); ++trial) trial->finish(Style::wait);
    for (std::size_t i = 0; i < trials.size(); ++i) EXPECT_EQ(trials[i].verdict(), "") << "operation " << i;
    comm.barrier();
  });
}

TEST_P(InFlight, comms_go_on_independently_whatever_order_their_operations_are_issued_in) {
  if (over_nccl()) GTEST_SKIP() << "NCCL needs one order of issue on all ranks for comms that share a device";
  with_ranks(GetParam(), [](Comm& comm) {
    std::vector<Comm> comms{comm, comm.dup(), comm.dup(), comm.split(0, -comm.rank())};
    std::vector<Trial> trials;
    std::vector<std::size_t> order;
    for (std::uint64_t i = 0; i < 24; ++i) {
      trials.emplace_back(comms[i % comms.size()], nth_case(i));
      order.push_back(i);
    }
    // Each rank starts with a different comm; within a comm the order is the same.
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const auto place = [&](std::size_t i) { return (i + static_cast<std::size_t>(comm.rank())) % comms.size(); };
      return place(a) < place(b);
    });
    for (std::size_t i : order) trials[i].start(comms[i % comms.size()], {.async = true});
    for (std::size_t i = 0; i < trials.size(); ++i)
      trials[(i * 5) % trials.size()].finish(i % 2 ? Style::wait : Style::test);
    for (std::size_t i = 0; i < trials.size(); ++i) EXPECT_EQ(trials[i].verdict(), "") << "operation " << i;
    comm.barrier();
  });
}

TEST_P(InFlight, operations_on_the_same_memory_take_effect_in_the_order_of_issue) {
  with_ranks(GetParam(), [](Comm& comm) {
    Comm other = comm.dup();
    const int n = comm.size(), me = comm.rank(), next = (me + 1) % n, previous = (me + n - 1) % n;
    for (std::size_t count : {1u, 100u, 5'000u, 200'000u}) {
      std::vector<std::int64_t> a(count, me + 1), b(count, 0), c(count * static_cast<std::size_t>(n), -1);
      std::vector<Work> works;
      works.push_back(comm.all_reduce(a, sum, {.async = true}));      // a = n(n+1)/2
      works.push_back(other.all_reduce(a, a, max, {.async = true}));  // the same
      works.push_back(comm.send(a, next, {.async = true}));           // reads it
      works.push_back(other.all_reduce(a, sum, {.async = true}));     // n times that
      works.push_back(comm.recv(b, previous, {.async = true}));       // the first value
      works.push_back(other.all_gather(b, c, {.async = true}));
      works.push_back(comm.all_reduce(b, a, sum, {.async = true}));  // overwrites a
      works.push_back(other.broadcast(b, n - 1, {.async = true}));
      std::rotate(works.begin(), works.begin() + 3, works.end());
      for (Work& work : works) work.wait();
      const std::int64_t first = std::int64_t{n} * (n + 1) / 2;
      EXPECT_EQ(b, std::vector<std::int64_t>(count, first));
      EXPECT_EQ(c, std::vector<std::int64_t>(c.size(), first));
      EXPECT_EQ(a, std::vector<std::int64_t>(count, first * n));
    }
    comm.barrier();
  });
}

TEST_P(InFlight, a_dropped_work_completes_all_the_same) {
  with_ranks(GetParam(), [](Comm& comm) {
    std::vector<float> values(50'000, 1.0f);
    { Work dropped = comm.all_reduce(values, sum, {.async = true}); }
    comm.all_reduce(values, sum);  // after it, as it touches the same memory
    EXPECT_EQ(values, std::vector<float>(values.size(), static_cast<float>(comm.size() * comm.size())));
    comm.barrier();
  });
}

TEST_P(InFlight, test_drives_an_operation_to_its_end_and_copies_of_a_work_agree) {
  with_ranks(GetParam(), [](Comm& comm) {
    std::vector<std::int32_t> values(300'000, 2);
    Work work = comm.all_reduce(values, product, {.async = true});
    Work copy = work;
    while (!work.test()) std::this_thread::yield();
    EXPECT_TRUE(copy.test());
    EXPECT_EQ(copy.error(), nullptr);
    copy.wait();
    EXPECT_EQ(values.front(), 1 << comm.size());
    EXPECT_TRUE(Work{}.test());
    Work{}.wait();
    comm.barrier();
  });
}

TEST_P(InFlight, threads_of_one_rank_share_its_comms) {
  if (over_nccl()) GTEST_SKIP() << "NCCL needs one order of issue on all ranks for comms that share a device";
  with_ranks(GetParam(), [](Comm& comm) {
    constexpr int threads = 3;
    std::vector<Comm> comms;
    for (int t = 0; t < threads; ++t) comms.push_back(comm.dup());
    std::vector<std::thread> running;
    std::vector<std::string> errors(threads);
    for (int t = 0; t < threads; ++t) {
      running.emplace_back([&, t] {
        try {
          for (std::uint64_t i = 0; i < 20; ++i) {
            Case c = nth_case(i + static_cast<std::uint64_t>(t) * 100);
            c.count = std::min<std::int64_t>(c.count, 3'000);
            run_case(comms[static_cast<std::size_t>(t)], c, static_cast<Style>(i % 3));
          }
        } catch (const std::exception& error) {
          errors[static_cast<std::size_t>(t)] = error.what();
        }
      });
    }
    for (auto& thread : running) thread.join();
    for (const auto& error : errors) EXPECT_EQ(error, "");
    comm.barrier();
  });
}

TEST_P(InFlight, a_rank_inside_any_call_moves_its_other_operations_on) {
  with_ranks(GetParam(), [](Comm& comm) {
    Comm other = comm.dup();
    std::vector<float> values(1 << 18, 1.0f);
    std::int32_t token = 0;
    Work pending;
    if (comm.rank() != 0) {
      pending = other.all_reduce(values, sum, {.async = true});
      comm.recv(Buffer(&token, 1, DType::i32), 0);  // arrives only after the all_reduce has completed on rank 0
    } else {
      other.all_reduce(values, sum);
      for (int r = 1; r < comm.size(); ++r) comm.send(ConstBuffer(&token, 1, DType::i32), r);
    }
    pending.wait();
    EXPECT_EQ(values, std::vector<float>(values.size(), static_cast<float>(comm.size())));
    comm.barrier();
  });
}

INSTANTIATE_TEST_SUITE_P(ranks, InFlight, testing::Values(1, 2, 3, 4, 5, 8),
                         [](const auto& of) { return "of_" + std::to_string(of.param); });

}  // namespace
}  // namespace medley::conformance
