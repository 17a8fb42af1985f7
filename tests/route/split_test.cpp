// Split routes: one tensor over two libraries at once.
#include "algorithms/split_share.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "algorithms/split_lane.hpp"
#include "harness/ranks.hpp"
#include "route/tables.hpp"

namespace medley {
namespace {

using namespace std::chrono_literals;
using algorithms::first_part;
using algorithms::share_of;

TEST(SplitShare, reads_names_and_nothing_else) {
  EXPECT_EQ(share_of("share5"), 5);
  EXPECT_EQ(share_of("share95"), 95);
  for (const char* wrong : {"", "share", "share0", "share100", "share5x", "shares5", "native", "ring"})
    EXPECT_EQ(share_of(wrong), std::nullopt) << wrong;
  for (const std::string_view name : algorithms::share_names()) EXPECT_TRUE(share_of(name)) << name;
}

TEST(SplitShare, divides_between_cache_lines_and_leaves_small_tensors_whole) {
  EXPECT_EQ(first_part(6400, 50), 3200);
  EXPECT_EQ(first_part(1000, 75), 704);
  EXPECT_EQ(first_part(100, 75), 64);
  EXPECT_EQ(first_part(70, 75), 70);
  EXPECT_EQ(first_part(70, 25), 0);
  EXPECT_EQ(first_part(0, 50), 0);
  EXPECT_EQ(first_part(std::int64_t{1} << 60, 50), std::int64_t{1} << 59);
}

/// A library that notes what it gets and completes when it is told to.
class NotingLane final : public Lane {
 public:
  struct Part final : Transfer {
    explicit Part(NotingLane& of) : lane(of) {}
    Poll poll() override { return lane.complete ? Poll::complete : Poll::waiting; }
    std::vector<int> awaited() const override { return {lane.awaited}; }
    void release() noexcept override {
      ++lane.released;
      delete this;
    }
    void abandon(std::shared_ptr<const void> memory) noexcept override {
      lane.kept = std::move(memory);  // as a library that cannot cancel
      delete this;
    }
    NotingLane& lane;
  };
  Transfer* start(const Call& call) override {
    if (refuses) throw Error(ErrorKind::system, "no");
    calls.push_back(call);
    return new Part(*this);
  }
  void abort(const Error&) noexcept override { aborted = true; }

  std::vector<Call> calls;
  bool complete = false, aborted = false, refuses = false;
  int released = 0, awaited = 0;
  std::shared_ptr<const void> kept;
};

class SplitLaneTest : public testing::Test {
 protected:
  SplitLaneTest() {
    auto one = std::make_unique<NotingLane>(), two = std::make_unique<NotingLane>();
    first = one.get(), second = two.get();
    first->awaited = 1, second->awaited = 2;
    algorithms::SplitLane::Lanes lanes;
    lanes.first = std::move(one), lanes.second = std::move(two);
    lane = std::make_unique<algorithms::SplitLane>(std::move(lanes), 3);
    call.op = Op::all_reduce;
    call.dtype = DType::f32;
    call.in = values, call.out = values;
    call.in_count = call.out_count = 1000;
    call.algorithm = "share75";
  }
  float values[1000] = {};
  Call call;
  NotingLane *first = nullptr, *second = nullptr;
  std::unique_ptr<algorithms::SplitLane> lane;
};

TEST_F(SplitLaneTest, gives_each_library_its_part_and_completes_with_both) {
  Transfer* const transfer = lane->start(call);
  ASSERT_EQ(first->calls.size() + second->calls.size(), 2u);
  EXPECT_EQ(first->calls[0].in_count, 704);
  EXPECT_EQ(first->calls[0].out, values);
  EXPECT_EQ(second->calls[0].out_count, 296);
  EXPECT_EQ(second->calls[0].in, values + 704);
  EXPECT_EQ(second->calls[0].algorithm, "");
  EXPECT_EQ(transfer->poll(), Poll::waiting);
  EXPECT_EQ(transfer->awaited(), (std::vector<int>{1, 2}));
  second->complete = true;
  EXPECT_EQ(transfer->poll(), Poll::moved);
  EXPECT_EQ(transfer->awaited(), std::vector<int>{1});
  first->complete = true;
  EXPECT_EQ(transfer->poll(), Poll::complete);
  transfer->release();
  EXPECT_EQ(first->released + second->released, 2);
}

TEST_F(SplitLaneTest, leaves_the_memory_of_a_failed_operation_to_both_libraries) {
  Transfer* const transfer = lane->start(call);
  lane->abort(Error(ErrorKind::aborted, "test"));
  EXPECT_TRUE(first->aborted && second->aborted);
  EXPECT_TRUE(lane->poll_abort());
  std::weak_ptr<int> memory;
  {
    auto owned = std::make_shared<int>(1);
    memory = owned;
    transfer->abandon(owned);
  }
  first->kept.reset();
  EXPECT_FALSE(memory.expired());  // the second may still use it
  second->kept.reset();
  EXPECT_TRUE(memory.expired());
}

TEST_F(SplitLaneTest, keeps_a_part_whose_counterpart_did_not_start_until_it_is_aborted) {
  second->refuses = true;
  EXPECT_THROW(lane->start(call), Error);
  EXPECT_EQ(first->calls.size(), 1u);
  EXPECT_FALSE(lane->poll_close() && !first->aborted);  // nothing else ends the part under way
  EXPECT_TRUE(first->aborted);
}

const std::vector<std::string> backends{"shm", SPLIT_WITH, "shm|" SPLIT_WITH};
const std::string split = backends.back();

void on_ranks(int size, const test::Body& body) {
  test::run_processes(size, body, [](ContextOptions& options) { options.backends = backends; });
}

std::vector<std::int64_t> counting(std::size_t count, std::int64_t from) {
  std::vector<std::int64_t> values(count);
  std::iota(values.begin(), values.end(), from);
  return values;
}

TEST(Split, gives_what_one_library_gives_for_every_share) {
  on_ranks(3, [](Context& context) {
    Comm world = context.world();
    const int rank = world.rank();
    for (const std::size_t count : {0u, 1u, 63u, 129u, 5'000u, 200'003u}) {
      for (const char* share : {"", "native", "share5", "share50", "share70", "share95"}) {
        const Options over{.backend = split, .algorithm = share};
        std::vector<std::int64_t> values = counting(count, rank), sums(count, -1), expected = counting(count, 0);
        for (std::int64_t& value : expected) value = 3 * value + 3;
        world.all_reduce(values, sums, sum, over);
        ASSERT_EQ(sums, expected) << share;
        world.all_reduce(values, max, over);  // in place
        ASSERT_EQ(values, counting(count, 2)) << share;
        std::vector<std::int64_t> tensor = rank == 1 ? counting(count, 7) : std::vector<std::int64_t>(count, -1);
        world.broadcast(tensor, 1, over);
        ASSERT_EQ(tensor, counting(count, 7)) << share;
        std::vector<std::int64_t> total(rank == 2 ? count : 0, -1);
        world.reduce(counting(count, rank), total, sum, 2, over);
        if (rank == 2) {
          ASSERT_EQ(total, expected) << share;
        }
      }
    }
  });
}

TEST(Split, carries_everything_else_over_its_first_library) {
  on_ranks(2, [](Context& context) {
    Comm world = context.world();
    const int rank = world.rank();
    const Options over{.backend = split};
    std::vector<std::int64_t> mine(1000, rank), both(2000, -1), other(1000, -1);
    world.all_gather(mine, both, over);
    EXPECT_EQ(both[999] + 10 * both[1000], 10);
    Work received = world.recv(other, 1 - rank, {.backend = split, .async = true});
    world.send(mine, 1 - rank, over);
    received.wait();
    EXPECT_EQ(other[999], 1 - rank);
    world.barrier(over);
    world.all_reduce(mine, sum, {.backend = split, .algorithm = "ring"});  // an algorithm over messages
    EXPECT_EQ(mine[0], 1);
    EXPECT_THROW(world.all_gather(mine, both, {.backend = split, .algorithm = "share50"}), Error);
    EXPECT_THROW(world.all_reduce(mine, sum, {.backend = split, .algorithm = "share51"}), Error);
  });
}

TEST(Split, runs_many_at_once_in_one_order_beside_its_own_halves) {
  on_ranks(3, [](Context& context) {
    Comm world = context.world();
    std::vector<std::vector<std::int64_t>> tensors;
    for (int i = 0; i < 24; ++i) tensors.push_back(counting(3'000, i));
    std::vector<Work> works;
    for (int i = 0; i < 24; ++i) {
      const std::string& backend = backends[static_cast<std::size_t>(i % 3)];
      works.push_back(world.all_reduce(tensors[static_cast<std::size_t>(i)], sum, {.backend = backend, .async = true}));
    }
    for (auto work = works.rbegin(); work != works.rend(); ++work) work->wait();
    for (int i = 0; i < 24; ++i) EXPECT_EQ(tensors[static_cast<std::size_t>(i)][2'999], 3 * (2'999 + i));
  });
}

TEST(Split, takes_the_share_of_a_rule) {
  on_ranks(2, [](Context& context) {
    Comm ruled = context.world().dup({.rules = "all_reduce:8K-=" + split + "/share75"});
    std::vector<std::int64_t> values(5'000, 1);
    ruled.all_reduce(values, sum);
    EXPECT_EQ(values, std::vector<std::int64_t>(5'000, 2));
    EXPECT_THROW(context.world().dup({.rules = "all_reduce=" + split + "/share51"}).all_reduce(values, sum), Error);
    context.world().barrier();
  });
}

// Both libraries have their part under way and wait for the missing rank.
TEST(Split, ends_both_parts_when_a_rank_is_missing) {
  on_ranks(3, [](Context& context) {
    Comm world = context.world();
    for (const std::size_t count : {2'000u, 500'000u}) {
      Comm victim = world.dup();
      std::vector<std::int64_t> values(count, 1);
      if (context.rank() != 1) {
        try {
          victim.all_reduce(values, sum, {.backend = split, .deadline = 200ms});
          ADD_FAILURE() << "it completed without rank 1";
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::timeout) << error.what();
          EXPECT_THAT(error.context().ranks, testing::Contains(1)) << error.what();
        }
        // Nothing of the libraries writes here any more.
        std::fill(values.begin(), values.end(), 5);
      }
      world.barrier();
      if (context.rank() != 1) {
        EXPECT_EQ(values, std::vector<std::int64_t>(count, 5));
      }
      std::vector<std::int64_t> again(count, 1);
      world.all_reduce(again, sum, {.backend = split});
      EXPECT_EQ(again, std::vector<std::int64_t>(count, 3));
    }
  });
}

TEST(SplitOfAStep, IsMadeWhereOnlyTheStepOfTheTableNamesIt) {
  const auto file =
      std::filesystem::temp_directory_path() / ("medley_split_step_" + std::to_string(getpid()) + ".json");
  route::Table table = route::tuned_table();
  table.step->routes = {{Op::all_reduce, route::DTypeClass::floating, {1, 2}, 0, INT64_MAX, {split, "share50"}}};
  table.save(file);
  const Context context(ContextOptions{.backends = {"shm", SPLIT_WITH}, .table = file});
  std::filesystem::remove(file);
  const std::vector<BackendInfo> open = context.backends();
  EXPECT_TRUE(std::any_of(open.begin(), open.end(), [](const BackendInfo& one) { return one.name == split; }));
}

}  // namespace
}  // namespace medley
