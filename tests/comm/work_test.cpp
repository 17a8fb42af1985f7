// Work beyond wait(): callbacks at completion, waits that time out without harm; and comms made by their members alone.
#include <gtest/gtest.h>

#include <barrier>

#include <atomic>
#include <span>
#include <thread>

#include "harness/ranks.hpp"

namespace medley {
namespace {

using namespace std::chrono_literals;

TEST(Work, CallsBackOnceWhenComplete) {
  test::run_threads(2, [](Context& context) {
    Comm world = context.world();
    std::vector<float> values(100'000, 1.0f);
    std::atomic<int> calls{0};
    Work work = world.all_reduce(values, sum, {.async = true});
    work.on_complete([&] { ++calls; });
    work.wait();
    while (calls == 0) std::this_thread::yield();  // another thread of the context may run the callback
    work.on_complete([&] { ++calls; });            // complete already: called at once
    EXPECT_EQ(calls, 2);
    world.barrier();
  });
}

TEST(Work, ACallbackMayIssueTheNextOperation) {
  test::run_threads(
      2,
      [](Context& context) {
        Comm world = context.world();
        std::vector<std::int32_t> first(4, 1), second(4, 2);
        std::atomic<bool> done{false};
        Work work = world.all_reduce(first, sum, {.async = true});
        work.on_complete([&] {
          Work next = world.all_reduce(second, sum, {.async = true});
          next.on_complete([&] { done = true; });
        });
        work.wait();
        while (!done) static_cast<void>(work.test()), std::this_thread::yield();
        EXPECT_EQ(first[0], 2);
        EXPECT_EQ(second[0], 4);
        world.barrier();
      },
      [](ContextOptions& options) { options.progress_thread = UseThread::always; });
}

TEST(Work, CallsBackForABatchAndAfterAnError) {
  std::barrier both_there(2);
  test::run_threads(2, [&](Context& context) {
    Comm world = context.world();
    std::vector<float> out(8, 1.0f), in(8);
    std::atomic<bool> batch = false, failed = false;
    Work both = world.sendrecv(out, 1 - world.rank(), in, 1 - world.rank(), {.async = true});
    both.on_complete([&] { batch = true; });
    both.wait();
    while (!batch) std::this_thread::yield();
    both_there.arrive_and_wait();  // an abort would end the operation that the other is still in
    Work never = world.recv(in, 1 - world.rank(), {.async = true, .tag = 9});
    never.on_complete([&] { failed = never.error() != nullptr; });
    both_there.arrive_and_wait();
    world.abort();
    EXPECT_THROW(never.wait(), Error);
    while (!failed) std::this_thread::yield();  // the thread that received the abort may run the callback
  });
}

TEST(Work, WaitForGivesUpWithoutHarm) {
  test::run_threads(2, [](Context& context) {
    Comm world = context.world();
    float value = static_cast<float>(world.rank());
    if (world.rank() == 0) {
      Work work = world.recv(std::span(&value, 1), 1, {.async = true});
      EXPECT_FALSE(work.wait_for(1ms));
      world.barrier();  // only now does rank 1 send
      EXPECT_TRUE(work.wait_for(30s));
      EXPECT_EQ(value, 1.0f);
    } else {
      world.barrier();
      world.send(std::span(&value, 1), 0);
    }
  });
}

// A caller that tests in a loop and never waits must also learn of timeouts and of ranks that left.
ErrorKind kind_from_testing(Work work) {
  try {
    const auto until = std::chrono::steady_clock::now() + 30s;
    while (!work.test() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    work.wait();
  } catch (const Error& error) {
    return error.kind();
  }
  return ErrorKind{};
}

TEST(Work, TestingAloneFailsAtTheDeadline) {
  std::barrier both_there(2);
  test::run_threads(2, [&](Context& context) {
    Comm world = context.world();
    float value = 0;
    if (world.rank() == 0) {
      EXPECT_EQ(kind_from_testing(world.recv(std::span(&value, 1), 1, {.async = true, .deadline = 200ms})),
                ErrorKind::timeout);
    }
    both_there.arrive_and_wait();
  });
}

TEST(Work, TestingAloneNoticesWhoLeftTheComm) {
  std::barrier both_there(2);
  test::run_threads(2, [&](Context& context) {
    auto both = std::make_unique<Comm>(context.world().dup());
    float value = 0;
    if (context.rank() == 0) {
      EXPECT_EQ(kind_from_testing(both->recv(std::span(&value, 1), 1, {.async = true})), ErrorKind::rank_lost);
    } else {
      both.reset();
    }
    both_there.arrive_and_wait();
  });
}

TEST(Context, MakesACommWithoutTheOthers) {
  test::run_threads(3, [](Context& context) {
    if (context.rank() == 1) {
      EXPECT_THROW(context.make_comm("ends", std::vector{2, 0}), Error);  // not a member
      EXPECT_THROW(context.make_comm("ends", std::vector{1, 3}), Error);  // there is no rank 3
    } else {
      Comm ends = context.make_comm("ends", std::vector{2, 0});
      EXPECT_EQ(ends.rank(), context.rank() == 2 ? 0 : 1);
      std::int64_t value = context.rank();
      ends.all_reduce(std::span(&value, 1), sum);
      EXPECT_EQ(value, 2);
    }
    context.world().barrier();
  });
}

/// Larger than an eager message, so that it waits for its receive.
TEST(Work, ABlockingSendToItselfSaysSoLongBeforeItsDeadlineAndInItsError) {
  test::run_threads(1, [](Context& context) {
    std::vector<float> values(1 << 20);
    testing::internal::CaptureStderr();
    try {
      context.world().send(values, 0, {.deadline = 2s});
      ADD_FAILURE() << "nobody receives it";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::timeout);
      EXPECT_NE(std::string(error.what())
                    .find("this rank sends to itself, and nothing here received the message: "
                          "post the receive, with async, before you wait for the send"),
                std::string::npos)
          << error.what();
    }
    EXPECT_EQ(
        testing::internal::GetCapturedStderr(),
        "medley: comm world: rank 0 waits in send #1 to itself until something here receives it; post the receive, "
        "with async, before you wait for the send\n");
  });
}

TEST(Work, ABlockingSendToItselfEndsWhereAnotherThreadReceives) {
  test::run_threads(1, [](Context& context) {
    Comm world = context.world();
    std::vector<float> given(1 << 20, 3), taken(1 << 20);
    std::thread other([&] { world.recv(taken, 0); });
    world.send(given, 0);
    other.join();
    EXPECT_EQ(taken, given);
  });
}

}  // namespace
}  // namespace medley
