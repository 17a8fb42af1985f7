// A fuse scope: collects, flushes at the same places on all ranks, and refuses what could never end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/ranks.hpp"

namespace medley {
namespace {

using testing::HasSubstr;

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(FuseScope, WorksCompletePerTensor) {
  test::run_threads(3, [](Context& context) {
    Comm world = context.world();
    std::vector<std::vector<float>> tensors;
    std::vector<Work> works;
    for (int t = 0; t < 100; ++t) tensors.emplace_back(t % 17, 1.0f);
    std::vector<std::int32_t> count(1, 1);
    std::vector<float> large(100'000, 2.0f);
    std::atomic<int> called{0};
    {
      Fuse scope(world);
      for (auto& tensor : tensors) works.push_back(world.all_reduce(tensor, sum, {.async = true}));
      works.push_back(world.broadcast(count, 1, {.async = true}));
      works.push_back(world.all_reduce(large, sum, {.async = true}));
      works.front().on_complete([&] { ++called; });
      EXPECT_FALSE(works.front().test());
    }
    for (std::size_t t = works.size(); t-- > 0;) works[t].wait();
    for (const auto& tensor : tensors) EXPECT_EQ(tensor, std::vector<float>(tensor.size(), 3.0f));
    EXPECT_EQ(large.back(), 6.0f);
    while (called == 0) context.progress();
    world.barrier();
  });
}

TEST(FuseScope, AnotherCollectiveFlushesItFirst) {
  test::run_threads(2, [](Context& context) {
    Comm world = context.world();
    std::vector<float> a(8, 1), b(8, 1), c(8, 1);
    Fuse scope(world);
    Work first = world.all_reduce(a, sum, {.async = true});
    Work second = world.all_reduce(b, sum, {.async = true});
    world.all_reduce(c, sum);  // blocks, so it is not collected
    first.wait();
    second.wait();
    EXPECT_EQ(a[0] + b[0] + c[0], 6.0f);
    Work third = world.all_reduce(a, sum, {.async = true});
    scope.flush();
    third.wait();
    EXPECT_EQ(a[0], 4.0f);
  });
}

TEST(FuseScope, FlushesWhenItIsFull) {
  test::run_threads(2, [](Context& context) {
    Comm world = context.world();
    std::vector<std::vector<float>> tensors(2400, std::vector<float>(512, 1.0f));  // 2 KiB each, 4.7 MiB together
    std::vector<Work> works;
    Fuse scope(world);
    for (auto& tensor : tensors) works.push_back(world.all_reduce(tensor, sum, {.async = true}));
    works.front().wait();  // issued when 4 MiB were there
    EXPECT_EQ(tensors.front()[0], 2.0f);
    EXPECT_THAT(error_of([&] { works.back().wait(); }), HasSubstr("collected in an open fuse scope"));
    scope.flush();
    for (Work& work : works) work.wait();
    EXPECT_EQ(tensors.back()[5], 2.0f);
  });
}

TEST(FuseScope, IssuesAtOnceWhatWouldTravelAlone) {
  test::run_threads(2, [](Context& context) {
    Comm world = context.world();
    std::vector<float> small(8, 1), large(1 << 20, 1);
    Fuse scope(world);
    Work collected = world.all_reduce(small, sum, {.async = true});
    Work issued = world.all_reduce(large, sum, {.async = true});
    issued.wait();
    EXPECT_EQ(large[77], 2.0f);
    // The same memory again, which a collected tensor would refuse
    world.all_reduce(large, sum, {.async = true}).wait();
    EXPECT_EQ(large[77], 4.0f);
    EXPECT_THAT(error_of([&] { collected.wait(); }), HasSubstr("collected in an open fuse scope"));
    scope.flush();
    collected.wait();
    EXPECT_EQ(small[7], 2.0f);
  });
}

TEST(FuseScope, RefusesWhatCouldNeverEnd) {
  test::run_threads(2, [](Context& context) {
    Comm world = context.world(), other = world.dup();
    std::vector<float> a(8, 1), b(8, 1);
    Work work;
    {
      Fuse outer(world), inner(world);
      work = world.all_reduce(a, sum, {.async = true});
      EXPECT_THAT(error_of([&] { work.wait(); }), HasSubstr("flush or end the scope before waiting"));
      EXPECT_THAT(error_of([&] { other.all_reduce(a, sum); }),
                  HasSubstr("overlaps a tensor that the open fuse scope of comm world"));
      EXPECT_THAT(error_of([&] { world.all_reduce(a, b, sum, {.async = true}); }), HasSubstr("overlaps a tensor"));
      EXPECT_THAT(error_of([&] { world.send(a, 1 - world.rank()); }), HasSubstr("overlaps a tensor"));
      const std::vector<Buffer> list = {b, a};
      EXPECT_THAT(error_of([&] { other.all_reduce(list, sum); }),
                  HasSubstr("overlaps a tensor that the open fuse scope of comm world"));
      other.all_reduce(b, sum);  // other memory of another comm
    }
    work.wait();
    EXPECT_EQ(a[0], 2.0f);
    EXPECT_EQ(b[0], 2.0f);
    world.barrier();
  });
}

TEST(FuseScope, AWrongCallIsRefusedAloneAndTheOthersAreIssued) {
  test::run_threads(2, [](Context& context) {
    Comm world = context.world();
    std::vector<float> a(8, 1), b(8, 1), c(8, 1);
    std::vector<Work> works;
    {
      Fuse scope(world);
      works.push_back(world.all_reduce(a, sum, {.async = true}));
      EXPECT_THAT(error_of([&] { world.all_reduce(b, sum, {.async = true, .algorithm = "nonsense"}); }),
                  HasSubstr("nonsense"));
      works.push_back(world.all_reduce(c, sum, {.async = true}));
    }
    for (Work& work : works) work.wait();
    EXPECT_EQ(a[0] + b[0] + c[0], 5.0f);
    world.barrier();
  });
}

TEST(FuseScope, AFailedCommEndsItsWorksWithTheError) {
  test::run_threads(2, [](Context& context) {
    Comm world = context.world(), doomed = world.dup();
    std::vector<float> a(8, 1), b(8, 1);
    Work first, second;
    {
      Fuse scope(doomed);
      first = doomed.all_reduce(a, sum, {.async = true});
      second = doomed.all_reduce(b, sum, {.async = true});
      world.barrier();
      doomed.abort();
      world.barrier();
      EXPECT_THAT(error_of([&] { scope.flush(); }), HasSubstr("called abort"));
    }
    ASSERT_TRUE(first.complete());
    ASSERT_NE(second.error(), nullptr);
    EXPECT_EQ(second.error()->kind(), ErrorKind::aborted);
    EXPECT_EQ(second.error()->context().comm, doomed.name());
    world.barrier();
  });
}

TEST(FuseScope, TheConsistencyCheckerComparesTheLayout) {
  setenv("MEDLEY_CHECK", "1", 1);
  test::run_threads(2, [](Context& context) {
    Comm world = context.world();
    std::vector<float> a(8, 1), b(8, 1);
    const std::size_t cut = world.rank() == 0 ? 3 : 5;  // eight elements on both ranks, cut at different places
    const std::vector<Buffer> list = {Buffer(a.data(), static_cast<std::int64_t>(cut), DType::f32),
                                      Buffer(b.data(), static_cast<std::int64_t>(8 - cut), DType::f32)};
    EXPECT_THAT(error_of([&] { world.all_reduce(list, sum); }), HasSubstr("2 fused tensors of layout"));
  });
  unsetenv("MEDLEY_CHECK");
}

}  // namespace
}  // namespace medley
