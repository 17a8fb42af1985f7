// Fusion and compression: what a call says about compression holds in lists, scopes and automatic fusion, and what
// fusion sends for itself is never compressed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <medley/error_feedback.hpp>
#include <medley/fuse.hpp>

#include "comm/refusal.hpp"
#include "harness/ranks.hpp"

namespace medley::test {
namespace {

enum class Way { alone, list, scope, automatic };
constexpr Way all_ways[] = {Way::alone, Way::list, Way::scope, Way::automatic};
constexpr int count = 100;  // several blocks of int4, whose error on these values is visible

float value(int i) { return 1.0f + 0.001f * static_cast<float>(i); }

/// The largest error of the sum of two equal tensors that go this way, on two ranks.
float error_of_sum(Way way, CommOptions comm_options, std::string_view compress) {
  std::vector<float> errors(2);
  comm_options.fuse = way == Way::automatic;
  run_threads(2, [&](Context& context) {
    Comm comm = context.world().dup(comm_options);
    std::vector<float> a(count), b(count);
    for (int i = 0; i < count; ++i) a[static_cast<std::size_t>(i)] = b[static_cast<std::size_t>(i)] = value(i);
    const Options options{.async = true, .compress = compress};
    std::vector<Work> works;
    const auto both = [&] {
      works.push_back(comm.all_reduce(a, sum, options));
      works.push_back(comm.all_reduce(b, sum, options));
    };
    if (way == Way::list) {
      works.push_back(comm.all_reduce(std::vector<Buffer>{a, b}, sum, options));
    } else if (way == Way::scope) {
      Fuse scope(comm);
      both();
    } else {
      both();
    }
    for (Work& work : works) work.wait();
    EXPECT_EQ(a, b);
    float& error = errors[static_cast<std::size_t>(comm.rank())];
    for (int i = 0; i < count; ++i) error = std::max(error, std::abs(a[static_cast<std::size_t>(i)] - 2 * value(i)));
    context.world().barrier();
  });
  EXPECT_EQ(errors[0], errors[1]);
  return errors[0];
}

TEST(FusedCompression, ACodecThatTheCallNamesIsUsedInEveryWay) {
  const float alone = error_of_sum(Way::alone, {}, "int4");
  EXPECT_GT(alone, 0.0f);
  for (const Way way : all_ways) EXPECT_EQ(error_of_sum(way, {}, "int4"), alone) << "way " << static_cast<int>(way);
}

TEST(FusedCompression, ACallThatForbidsItIsExactInEveryWay) {
  for (const Way way : all_ways) {
    EXPECT_EQ(error_of_sum(way, {.rules = "all_reduce=shm+int4"}, "none"), 0.0f) << "way " << static_cast<int>(way);
  }
}

TEST(FusedCompression, ARuleCompressesCollectivesOfAutomaticFusionAlone) {
  const CommOptions options{.rules = "all_reduce=shm+int4"};
  EXPECT_EQ(error_of_sum(Way::automatic, options, ""), error_of_sum(Way::alone, options, ""));
}

TEST(FusedCompression, AgreementsAndPackedBytesAreNotCompressed) {
  for (const char* rules : {"all_reduce=shm+bf16;all_gather=shm+int8", "all_reduce=shm+int4;all_gather:100-=shm+int4",
                            "all_reduce:0-4=shm+int8;all_reduce:5-=shm+bf16;all_gather=shm+lz4"}) {
    run_threads(2, [rules](Context& context) {
      Comm comm = context.world().dup({.rules = rules, .fuse = true});
      for (int round = 0; round < 5; ++round) {
        std::vector<std::int64_t> integers(100, 5), more(100, 7);
        std::vector<std::int32_t> mine(10, comm.rank() + 1), other(20, comm.rank() + 3), all(20), others(40);
        std::vector<Work> works;
        works.push_back(comm.all_reduce(integers, sum, {.async = true}));
        works.push_back(comm.all_gather(mine, all, {.async = true}));
        works.push_back(comm.all_reduce(more, sum, {.async = true}));
        works.push_back(comm.all_gather(other, others, {.async = true}));
        for (Work& work : works) work.wait();
        ASSERT_EQ(integers, std::vector<std::int64_t>(100, 10)) << rules;
        ASSERT_EQ(more, std::vector<std::int64_t>(100, 14)) << rules;
        ASSERT_EQ(all[9] * 10 + all[10], 12) << rules;
        ASSERT_EQ(others[19] * 10 + others[20], 34) << rules;
      }
      context.world().barrier();
    });
  }
}

TEST(FusedCompression, EachTensorOfAScopeKeepsItsErrorFeedback) {
  run_threads(2, [](Context& context) {
    Comm world = context.world();
    ErrorFeedback of_a, of_b, of_list;
    std::vector<float> a(count), b(count / 2);
    for (int i = 0; i < count; ++i) a[static_cast<std::size_t>(i)] = b[static_cast<std::size_t>(i / 2)] = value(i);
    std::vector<Work> works;
    {
      Fuse scope(world);
      works.push_back(world.all_reduce(a, sum, {.async = true, .compress = "int4", .feedback = &of_a}));
      works.push_back(world.all_reduce(b, sum, {.async = true, .compress = "int4", .feedback = &of_b}));
    }
    for (Work& work : works) work.wait();
    EXPECT_EQ(of_a.residual().size(), a.size());
    EXPECT_EQ(of_b.residual().size(), b.size());
    const auto lost = [](float one) { return one != 0; };
    EXPECT_TRUE(std::any_of(of_a.residual().begin(), of_a.residual().end(), lost));
    EXPECT_TRUE(std::any_of(of_b.residual().begin(), of_b.residual().end(), lost));
    expect_refused({"the list has 2", "fuse scope"}, [&] {
      world.all_reduce(std::vector<Buffer>{a, b}, sum, {.compress = "int4", .feedback = &of_list});
    });
    world.barrier();
  });
}

}  // namespace
}  // namespace medley::test
