// Comms made from comms, and several contexts in one process.
#include <algorithm>
#include <numeric>

#include "conformance/run_case.hpp"

namespace medley::conformance {
namespace {

class Comms : public testing::TestWithParam<int> {};

/// A few operations that use every rank of the comm.
void exercise(Comm& comm, std::uint64_t seed) {
  for (Op op : {Op::all_reduce, Op::all_to_allv, Op::gather, Op::broadcast}) {
    run_case(comm, {.op = op, .count = 700, .root = comm.size() - 1, .seed = ++seed}, Style::blocking);
  }
  std::int32_t mine = comm.rank(), theirs = -1;
  const int n = comm.size();
  comm.sendrecv(ConstBuffer(&mine, 1, DType::i32), (mine + 1) % n, Buffer(&theirs, 1, DType::i32), (mine + n - 1) % n);
  EXPECT_EQ(theirs, (mine + n - 1) % n);
}

TEST(MakeComm, a_comm_is_made_while_a_large_send_is_on_its_way) {
  if (kind_of_ranks() == "launched" || over_nccl()) GTEST_SKIP() << "needs a context of its own, and host memory";
  // Ranks that make a comm by name in the world's context: the receiver joins only after it has the message.
  const auto body = [](Context& context) {
    Comm world = context.world();
    std::vector<std::uint8_t> bytes(std::size_t{8} << 20, world.rank() == 0 ? 7 : 0);
    Work sent;
    if (world.rank() == 0) sent = world.send(bytes, 1, {.async = true});
    if (world.rank() == 1) world.recv(bytes, 0);
    const std::vector<int> both{0, 1};
    Comm made = context.make_comm("pair", both);
    sent.wait();
    EXPECT_EQ(bytes[bytes.size() / 2], 7);
    made.barrier();
  };
  const auto adjust = [](ContextOptions& options) {
    options.backends = backends_under_test();
    options.deadline = std::chrono::seconds(20);
  };
  if (kind_of_ranks() == "threads") {
    test::run_threads(2, body, adjust);
  } else {
    test::run_processes(2, body, adjust);
  }
}

TEST_P(Comms, split_gives_each_color_its_own_comm_ordered_by_key_then_rank) {
  with_ranks(GetParam(), [](Comm& comm) {
    const int n = comm.size(), me = comm.rank();
    Comm half = comm.split(me % 2, -me);  // reversed
    ASSERT_TRUE(half);
    EXPECT_EQ(half.size(), (n + 1 - me % 2) / 2);
    EXPECT_EQ(half.rank(), half.size() - 1 - me / 2);
    EXPECT_NE(half.name(), comm.name());
    exercise(half, 10);
    Comm same_keys = comm.split(5);
    EXPECT_EQ(same_keys.rank(), me);
    EXPECT_EQ(same_keys.size(), n);
    const bool joins = me != 0;
    Comm without_first = comm.split(joins ? 1 : -1);
    EXPECT_EQ(static_cast<bool>(without_first), joins);
    if (joins) exercise(without_first, 20);
    exercise(comm, 30);
  });
}

TEST_P(Comms, subset_keeps_the_listed_order) {
  with_ranks(GetParam(), [](Comm& comm) {
    const int n = comm.size();
    std::vector<int> reversed(static_cast<std::size_t>(n));
    std::iota(reversed.rbegin(), reversed.rend(), 0);
    Comm backwards = comm.subset(reversed);
    EXPECT_EQ(backwards.rank(), n - 1 - comm.rank());
    exercise(backwards, 40);
    const std::vector<int> ends = n > 1 ? std::vector<int>{n - 1, 0} : std::vector<int>{0};
    Comm outer = comm.subset(ends);
    const auto place = std::find(ends.begin(), ends.end(), comm.rank());
    EXPECT_EQ(static_cast<bool>(outer), place != ends.end());
    if (outer) {
      EXPECT_EQ(outer.rank(), place - ends.begin());
      exercise(outer, 50);
    } else {
      EXPECT_EQ(outer.rank(), -1);
      EXPECT_EQ(outer.size(), 0);
      EXPECT_EQ(outer.name(), "");
    }
    exercise(comm, 60);
  });
}

TEST_P(Comms, nested_and_many_comms_work_side_by_side) {
  with_ranks(GetParam(), [](Comm& comm) {
    std::vector<Comm> many;
    Comm inner = comm.dup();
    for (int depth = 0; depth < 4; ++depth) {
      inner = inner.split(inner.rank() < (inner.size() + 1) / 2 ? 0 : 1);
      many.push_back(inner);
    }
    for (int i = 0; i < 12; ++i) many.push_back(comm.dup());
    for (std::size_t i = 0; i < many.size(); ++i) exercise(many[i], 100 * i);
    many.erase(many.begin(), many.begin() + 6);  // destroying some does not disturb the others
    for (std::size_t i = 0; i < many.size(); ++i) exercise(many[i], 77 * i);
    exercise(comm, 5);
    comm.barrier();
  });
}

TEST_P(Comms, messages_of_one_comm_never_arrive_in_another) {
  with_ranks(GetParam(), [](Comm& comm) {
    Comm a = comm.dup(), b = comm.dup();
    const int to = (comm.rank() + 1) % comm.size(), from = (comm.rank() + comm.size() - 1) % comm.size();
    const std::int32_t in_a = 1, in_b = 2;
    std::int32_t got_a = 0, got_b = 0;
    Work sent_a = a.send(ConstBuffer(&in_a, 1, DType::i32), to, {.async = true});
    Work sent_b = b.send(ConstBuffer(&in_b, 1, DType::i32), to, {.async = true});
    b.recv(Buffer(&got_b, 1, DType::i32), from);
    a.recv(Buffer(&got_a, 1, DType::i32), from);
    sent_a.wait();
    sent_b.wait();
    EXPECT_EQ(got_a, 1);
    EXPECT_EQ(got_b, 2);
    comm.barrier();
  });
}

INSTANTIATE_TEST_SUITE_P(ranks, Comms, testing::Values(1, 2, 3, 4, 5, 8),
                         [](const auto& of) { return "of_" + std::to_string(of.param); });

TEST(Contexts, live_side_by_side_in_one_process_and_share_nothing) {
  if (kind_of_ranks() == "launched") GTEST_SKIP() << "two ranks in one process are not a launcher's";
  auto first_store = make_local_store(), second_store = make_local_store();
  std::vector<std::thread> ranks;
  std::vector<std::string> errors(2);
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      try {
        // The same thread is rank r of one job and rank 1 - r of the other.
        Context first({.backends = backends_under_test(), .rank = rank, .size = 2, .store = first_store});
        Context second({.backends = backends_under_test(), .rank = 1 - rank, .size = 2, .store = second_store});
        Comm a = first.world(), b = second.world();
        exercise(a, 1);
        exercise(b, 2);
        std::vector<float> x(30'000, 1.0f), y(30'000, 2.0f);
        Work in_first = a.all_reduce(x, sum, {.async = true});
        Work in_second = b.all_reduce(y, sum, {.async = true});
        in_second.wait();
        in_first.wait();
        EXPECT_EQ(x.back(), 2.0f);
        EXPECT_EQ(y.back(), 4.0f);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  for (auto& rank : ranks) rank.join();
  EXPECT_EQ(errors[0], "");
  EXPECT_EQ(errors[1], "");
}

}  // namespace
}  // namespace medley::conformance
