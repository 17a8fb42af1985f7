// Lists of tensors as one operation: mixed sizes and types, results like those of single calls, errors with the
// tensor's number.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "harness/ranks.hpp"

namespace medley {
namespace {

using testing::HasSubstr;

/// Rank r's tensor t has the value of its index, plus t, times r + 1: sums are exact.
std::vector<float> input(int rank, int tensor, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>((static_cast<int>(i % 50) + tensor) * (rank + 1));
  return values;
}

std::vector<float> times(std::vector<float> values, int factor) {
  for (float& value : values) value *= static_cast<float>(factor);
  return values;
}

int weight(int ranks) { return ranks * (ranks + 1) / 2; }  // sum of r + 1

TEST(Lists, AllReducesTensorsOfMixedSizesAndTypesInPlace) {
  for (int ranks : {1, 2, 3}) {
    test::run_threads(ranks, [ranks](Context& context) {
      Comm world = context.world();
      const std::vector<std::size_t> counts = {1, 0, 300, 7, 20'000, 255, 1'000'000, 64};
      std::vector<std::vector<float>> floats;
      std::vector<std::vector<std::int64_t>> integers;
      std::vector<Buffer> list;
      for (std::size_t t = 0; t < counts.size(); ++t)
        floats.push_back(input(world.rank(), static_cast<int>(t), counts[t]));
      for (std::size_t t = 0; t < 5; ++t) integers.emplace_back(t + 1, world.rank() + 1);
      for (std::size_t t = 0; t < counts.size(); ++t) {
        list.emplace_back(floats[t]);
        if (t < integers.size()) list.emplace_back(integers[t]);
      }
      world.all_reduce(list, sum);
      for (std::size_t t = 0; t < counts.size(); ++t) {
        EXPECT_EQ(floats[t], times(input(0, static_cast<int>(t), counts[t]), weight(ranks))) << "tensor " << t;
      }
      for (const auto& tensor : integers) EXPECT_EQ(tensor, std::vector<std::int64_t>(tensor.size(), weight(ranks)));
      world.barrier();
    });
  }
}

TEST(Lists, BroadcastsGathersAndScattersEachTensorLikeACallOfItsOwn) {
  constexpr int ranks = 3;
  test::run_threads(ranks, [](Context& context) {
    Comm world = context.world();
    const int me = world.rank();
    std::vector<float> a = input(me, 1, 10), b = input(me, 2, 33);
    std::vector<std::uint8_t> c(5, static_cast<std::uint8_t>(me));
    const std::vector<Buffer> roots = {a, c, b};
    world.broadcast(roots, 1);
    EXPECT_EQ(a, input(1, 1, 10));
    EXPECT_EQ(b, input(1, 2, 33));
    EXPECT_EQ(c, std::vector<std::uint8_t>(5, 1));

    a = input(me, 3, 10);
    c.assign(5, static_cast<std::uint8_t>(me + 7));
    std::vector<float> all_a(30);
    std::vector<std::uint8_t> all_c(15);
    world.all_gather(std::vector<ConstBuffer>{a, c}, std::vector<Buffer>{all_a, all_c}, {.async = true}).wait();
    for (int r = 0; r < ranks; ++r) {
      const std::vector<float> part = input(r, 3, 10);
      EXPECT_EQ(std::memcmp(all_a.data() + 10 * r, part.data(), 40), 0) << "of rank " << r;
      EXPECT_EQ(all_c[static_cast<std::size_t>(5 * r)], r + 7);
    }

    const std::vector<float> whole = input(me, 4, 12), more = input(me, 5, 6);
    std::vector<float> mine(4), less(2);
    world.reduce_scatter(std::vector<ConstBuffer>{whole, more}, std::vector<Buffer>{mine, less}, sum);
    const std::vector<float> expected = times(input(0, 4, 12), weight(ranks)),
                             fewer = times(input(0, 5, 6), weight(ranks));
    EXPECT_EQ(std::memcmp(mine.data(), expected.data() + 4 * me, 16), 0);
    EXPECT_EQ(std::memcmp(less.data(), fewer.data() + 2 * me, 8), 0);
    world.barrier();
  });
}

/// Above the limit tensors travel one after the other inside one operation, between others on the same lane and memory.
TEST(Lists, LargeTensorsKeepTheOrderOfTheirLaneAndMemory) {
  test::run_threads(3, [](Context& context) {
    Comm world = context.world(), other = world.dup();
    for (int round = 0; round < 20; ++round) {
      std::vector<std::vector<float>> tensors(40, std::vector<float>(5000, 1));
      const std::vector<Buffer> list(tensors.begin(), tensors.end()), half(list.begin(), list.begin() + 20);
      std::vector<Work> works;
      works.push_back(other.all_reduce(tensors[30], sum, {.async = true}));  // holds the whole list on each rank
      works.push_back(world.all_reduce(list, sum, {.async = true}));
      works.push_back(world.broadcast(tensors[3], 2, {.async = true}));
      works.push_back(world.all_reduce(half, sum, {.async = true}));
      works.push_back(other.all_reduce(tensors[39], sum, {.async = true}));
      for (std::size_t i = works.size(); i-- > 0;) works[i].wait();
      EXPECT_EQ(tensors[3][4999], 9.0f);
      EXPECT_EQ(tensors[19][0], 9.0f);
      EXPECT_EQ(tensors[20][0], 3.0f);
      EXPECT_EQ(tensors[30][17], 9.0f);
      EXPECT_EQ(tensors[39][17], 9.0f);
    }
    world.barrier();
  });
}

TEST(Lists, LargeTensorsTakeTheRoutesOfTheirSizes) {
  const auto rules = [](ContextOptions& options) {
    options.rules =
        "all_reduce:-40000=shm/recursive_doubling; all_reduce:40001-80000=shm/ring; all_reduce:80001-=shm+int8; *=shm";
  };
  test::run_threads(
      2,
      [](Context& context) {
        Comm world = context.world();
        const std::vector<std::size_t> counts = {5000, 12'000, 30'000, 6000, 15'000, 5001, 31'000, 700, 12'001};
        std::vector<std::vector<float>> tensors, alone;
        for (std::size_t t = 0; t < counts.size(); ++t)
          tensors.push_back(input(world.rank(), static_cast<int>(t), counts[t]));
        alone = tensors;
        world.all_reduce(std::vector<Buffer>(tensors.begin(), tensors.end()), sum);
        for (auto& tensor : alone) world.all_reduce(tensor, sum);
        EXPECT_EQ(tensors, alone) << "the bits of single calls, also where they are compressed";
        world.barrier();
      },
      rules);
}

TEST(Lists, ARankThatIsMissingInASeriesIsNamed) {
  test::run_threads(2, [](Context& context) {
    Comm world = context.world();
    std::vector<std::vector<float>> tensors(30, std::vector<float>(5000, 1));
    const std::vector<Buffer> list(tensors.begin(), tensors.end()), fewer(list.begin(), list.begin() + 10);
    try {
      if (world.rank() == 0) {
        world.all_reduce(list, sum, {.deadline = std::chrono::milliseconds(300)});
      } else {
        world.all_reduce(fewer, sum);  // and nothing more, until the other rank has given up
        world.recv(tensors[29], 0, {.deadline = std::chrono::seconds(20)});
      }
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("all_reduce #1"));
    }
  });
}

TEST(Lists, LaterOperationsOnATensorWaitForItsMessage) {
  test::run_threads(2, [](Context& context) {
    Comm world = context.world(), other = world.dup();
    for (int round = 0; round < 50; ++round) {
      std::vector<std::vector<float>> tensors(20, std::vector<float>(16, 1));
      std::vector<Buffer> list(tensors.begin(), tensors.end());
      Work first = world.all_reduce(list, sum, {.async = true});
      Work second = other.all_reduce(tensors[7], sum, {.async = true});  // reads what the list writes
      Work third = world.all_reduce(list, sum, {.async = true});
      third.wait();
      first.wait();
      second.wait();
      EXPECT_EQ(tensors[7][3], 8.0f);
      EXPECT_EQ(tensors[8][3], 4.0f);
    }
    world.barrier();
  });
}

TEST(Lists, ErrorsNameTheTensor) {
  test::run_threads(1, [](Context& context) {
    Comm world = context.world();
    std::vector<float> values(16), out(16);
    const std::vector<Buffer> twice = {values, Buffer(values.data() + 8, 4, DType::f32)};
    const auto message = [](const auto& call) -> std::string {
      try {
        call();
      } catch (const Error& error) {
        return error.what();
      }
      return "no error";
    };
    EXPECT_THAT(message([&] { world.all_reduce(twice, sum); }),
                HasSubstr("tensor 1 of the list overlaps an earlier one"));
    EXPECT_THAT(message([&] { world.all_gather(std::vector<ConstBuffer>{values}, std::vector<Buffer>{}); }),
                HasSubstr("the list of inputs has 1 tensors and the list of outputs 0"));
    const std::vector<ConstBuffer> same = {values, values};  // reading twice is fine
    std::vector<float> other(16);
    world.all_reduce(same, std::vector<Buffer>{out, other}, sum);
    EXPECT_TRUE(world.all_reduce(std::vector<Buffer>{}, sum).complete());
  });
}

}  // namespace
}  // namespace medley
