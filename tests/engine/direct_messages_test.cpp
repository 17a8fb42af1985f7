// Messages that are complete when they are issued, and those that must not be: a pending operation touches their
// memory, or an earlier message of their peer and tag is not started yet (docs/proofs.md).
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "harness/ranks.hpp"

namespace medley {
namespace {

using Values = std::array<std::int32_t, 2>;

Options tagged(int tag) {
  Options options;
  options.backend = "shm";
  options.async = true;
  options.tag = tag;
  return options;
}

/// Too large for shm's eager protocol: pending until the receiver has read it.
std::vector<std::int32_t> large() { return std::vector<std::int32_t>(100'000, 7); }

TEST(DirectMessages, AnEagerSendAndAReceiveOfWhatHasArrivedAreCompleteAtIssue) {
  test::run_threads(2, [](Context& context) {
    Comm world = context.world();
    Values values{1, 2}, got{};
    if (world.rank() == 0) {
      EXPECT_TRUE(world.send(values, 1, tagged(3)).complete());
      world.barrier();
    } else {
      world.barrier();
      Work named = world.recv(got, 0, tagged(3));
      EXPECT_TRUE(named.complete());
      EXPECT_EQ(named.source(), 0);
      EXPECT_EQ(got, (Values{1, 2}));
      named.wait();
    }
  });
}

TEST(DirectMessages, AReceiveFromAnySourceKnowsWhoSent) {
  test::run_threads(2, [](Context& context) {
    Comm world = context.world();
    Values got{};
    if (world.rank() == 0) world.send(Values{4, 5}, 1, tagged(3));
    world.barrier();
    if (world.rank() != 1) return;
    Work any = world.recv(got, any_source, tagged(3));
    any.wait();
    EXPECT_EQ(any.source(), 0);
    EXPECT_EQ(got, (Values{4, 5}));
  });
}

TEST(DirectMessages, ASendOfWhatAPendingReceiveWritesWaitsForIt) {
  test::run_threads(2, [](Context& context) {
    Comm world = context.world();
    Values values{0, 0};
    if (world.rank() == 0) {
      Work in = world.recv(values, 1, tagged(1));
      Work out = world.send(values, 1, tagged(2));
      EXPECT_FALSE(out.complete());
      world.barrier();
      out.wait();
    } else {
      world.barrier();
      world.send(Values{8, 9}, 0, tagged(1));
      world.recv(values, 0, tagged(2)).wait();
      EXPECT_EQ(values, (Values{8, 9}));
    }
  });
}

TEST(DirectMessages, AReceiveIntoWhatAPendingSendReadsWaitsForIt) {
  test::run_threads(2, [](Context& context) {
    Comm world = context.world();
    std::vector<std::int32_t> values = large();
    if (world.rank() == 1) world.send(Values{1, 2}, 0, tagged(2));
    world.barrier();
    if (world.rank() == 0) {
      Work out = world.send(values, 1, tagged(1));
      Work in =
          // Has arrived, but a pending operation still reads its memory
          world.recv(std::span(values).first(2), 1, tagged(2));
      EXPECT_FALSE(in.complete());
      world.barrier();
      in.wait();
      EXPECT_TRUE(out.complete());
      EXPECT_EQ(values[1], 2);
    } else {
      world.barrier();
      std::vector<std::int32_t> got(values.size());
      world.recv(got, 0, tagged(1)).wait();
      EXPECT_EQ(got, values);
    }
  });
}

TEST(DirectMessages, OfManyPostedReceivesEachHoldsItsOwnMemory) {
  constexpr std::size_t count = 40;  // more than the hazard index keeps in its list
  test::run_threads(2, [](Context& context) {
    Comm world = context.world();
    std::vector<Values> values(count);
    if (world.rank() == 0) {
      std::vector<Work> works;
      for (std::size_t i = 0; i < count; ++i) works.push_back(world.recv(values[i], 1, tagged(static_cast<int>(i))));
      std::vector<Work> echoes;
      for (std::size_t i = 0; i < count; ++i)
        echoes.push_back(world.send(values[i], 1, tagged(100 + static_cast<int>(i))));
      for (const Work& echo : echoes) EXPECT_FALSE(echo.complete()) << "a receive still writes what it sends";
      Values free{1, 2};
      EXPECT_TRUE(world.send(free, 1, tagged(99)).complete()) << "nothing touches this one's memory";
      world.barrier();
      for (Work& echo : echoes) echo.wait();
      for (const Work& work : works) EXPECT_TRUE(work.complete());
    } else {
      world.barrier();
      for (std::size_t i = count; i-- > 0;) {
        const auto number = static_cast<std::int32_t>(i);
        world.send(Values{number, -number}, 0, tagged(number));
      }
      for (std::size_t i = 0; i < count; ++i) {
        const auto number = static_cast<std::int32_t>(i);
        world.recv(values[i], 0, tagged(100 + number)).wait();
        EXPECT_EQ(values[i], (Values{number, -number}));
      }
      world.recv(values[0], 0, tagged(99)).wait();
      EXPECT_EQ(values[0], (Values{1, 2}));
    }
  });
}

TEST(DirectMessages, AnEmptyPostedReceiveHoldsNothing) {
  test::run_threads(2, [](Context& context) {
    Comm world = context.world();
    Values values{6, 7};
    if (world.rank() == 0) {
      Work empty = world.recv(std::span(values).subspan(1, 0), 1, tagged(1));  // inside what the next one reads
      EXPECT_FALSE(empty.complete());
      EXPECT_TRUE(world.send(values, 1, tagged(2)).complete());
      world.barrier();
      empty.wait();
      EXPECT_EQ(empty.source(), 1);
    } else {
      world.barrier();
      world.send(std::span(values).first(0), 0, tagged(1));
      world.recv(values, 0, tagged(2)).wait();
    }
  });
}

TEST(DirectMessages, ASendStaysBehindAnEarlierOneOfItsTagThatIsHeld) {
  test::run_threads(2, [](Context& context) {
    Comm world = context.world();
    Values first{}, second{3, 4}, other{5, 6};
    if (world.rank() == 0) {
      Work in = world.recv(first, 1, tagged(1));
      Work held = world.send(first, 1, tagged(2));
      Work behind = world.send(second, 1, tagged(2));
      EXPECT_FALSE(behind.complete());
      EXPECT_TRUE(world.send(other, 1, tagged(4)).complete()) << "another tag passes";
      world.barrier();
      behind.wait();
      EXPECT_TRUE(held.complete());
    } else {
      world.barrier();
      world.recv(other, 0, tagged(4)).wait();
      world.send(Values{1, 2}, 0, tagged(1));
      world.recv(first, 0, tagged(2)).wait();
      world.recv(second, 0, tagged(2)).wait();
      EXPECT_EQ(first, (Values{1, 2}));
      EXPECT_EQ(second, (Values{3, 4}));
    }
  });
}

TEST(DirectMessages, AReceiveStaysBehindAnEarlierOneOfItsTagThatIsHeld) {
  for (const int source : {1, any_source}) {
    test::run_threads(2, [source](Context& context) {
      Comm world = context.world();
      std::vector<std::int32_t> values = large();
      Values second{};
      if (world.rank() == 1) {
        world.send(Values{1, 2}, 0, tagged(2));
        world.send(Values{3, 4}, 0, tagged(2));
      }
      world.barrier();
      if (world.rank() == 0) {
        Work out = world.send(values, 1, tagged(1));
        Work held = world.recv(std::span(values).first(2), source, tagged(2));
        Work behind = world.recv(second, 1, tagged(2));
        EXPECT_FALSE(behind.complete()) << "the first message is not its own";
        world.barrier();
        behind.wait();
        held.wait();
        EXPECT_EQ(values[0], 1);
        EXPECT_EQ(second, (Values{3, 4}));
      } else {
        world.barrier();
        world.recv(values, 0, tagged(1)).wait();
      }
    });
  }
}

TEST(DirectMessages, SendsStayInOrderWhereThePipeIsFull) {
  test::run_threads(2, [](Context& context) {
    constexpr std::int32_t count = 5000;
    Comm world = context.world();
    std::vector<std::int32_t> values(count);
    std::vector<Work> works;
    std::int32_t pending = 0;
    for (std::int32_t i = 0; i < count; ++i) {
      const auto one = std::span(values).subspan(static_cast<std::size_t>(i), 1);
      if (world.rank() == 0) {
        one[0] = i;
        works.push_back(world.send(one, 1, tagged(1)));
        pending += works.back().complete() ? 0 : 1;
      } else {
        if (i == 0) world.barrier();
        works.push_back(world.recv(one, 0, tagged(1)));
      }
    }
    if (world.rank() == 0) {
      EXPECT_GT(pending, 0) << "nobody receives yet";
      world.barrier();
    }
    for (Work& work : works) work.wait();
    for (std::int32_t i = 0; i < count; ++i) ASSERT_EQ(values[static_cast<std::size_t>(i)], i);
  });
}

TEST(DirectMessages, AMessageThatHasArrivedAndDoesNotFitIsAnErrorOfItsReceive) {
  test::run_threads(2, [](Context& context) {
    Comm world = context.world();
    if (world.rank() == 1) world.send(Values{1, 2}, 0, tagged(1));
    world.barrier();
    if (world.rank() == 0) {
      std::int32_t one = 0;
      Work work = world.recv(std::span(&one, 1), 1, tagged(1));  // does not throw: async
      EXPECT_THROW(work.wait(), Error);
      EXPECT_EQ(one, 0);
    }
    world.barrier();
  });
}

}  // namespace
}  // namespace medley
