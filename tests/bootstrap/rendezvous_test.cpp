#include "bootstrap/rendezvous.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <medley/error.hpp>
#include <thread>

#include "bootstrap/deadlines.hpp"
#include "bootstrap/store_server.hpp"

namespace medley {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::in;
using testing::HasSubstr;

Place place_of(int rank, int size, const std::string& job) {
  Place place;
  place.rank = rank;
  place.size = size;
  place.store_host = fmt::format("@medley-test-{}-{}", getpid(), job);
  place.token = "token of " + job;
  return place;
}

template <typename Body>
void as_ranks(int size, Body body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back(body, rank);
  for (auto& thread : threads) thread.join();
}

TEST(Exchange, EveryRankGetsEveryonesString) {
  LocalStore store;
  as_ranks(5, [&](int rank) {
    const auto all = exchange(store, "a", rank, 5, std::string(static_cast<std::size_t>(rank), 'x'), in(seconds(60)));
    ASSERT_EQ(all.size(), 5u);
    for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(all[i], std::string(i, 'x'));
  });
  EXPECT_EQ(store.try_get("a/all"), std::nullopt) << "the last reader clears up";
}

TEST(Exchange, NamesTheRanksThatDidNotCome) {
  LocalStore store;
  as_ranks(2, [&](int i) {
    const int rank = i == 0 ? 0 : 2;
    try {
      exchange(store, "a", rank, 5, "here", in(milliseconds(200)));
      ADD_FAILURE() << "1, 3 and 4 never came";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::timeout);
      EXPECT_THAT(error.what(), HasSubstr("ranks 1, 3, 4 of 5"));
      EXPECT_EQ(error.context().ranks, std::vector<int>({1, 3, 4}));
    }
  });
}

TEST(Exchange, NamesRankZeroToo) {
  LocalStore store;
  try {
    exchange(store, "a", 1, 2, "here", in(milliseconds(50)));
    FAIL() << "rank 0 never came";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 0 of 2"));
  }
}

TEST(Exchange, TwoProcessesThatClaimOneRankAreToldSo) {
  LocalStore store;
  EXPECT_THROW(exchange(store, "a", 1, 3, "first", in(milliseconds(10))), Error);
  try {
    exchange(store, "a", 1, 3, "second", in(milliseconds(10)));
    FAIL() << "rank 1 is taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::mismatch);
    EXPECT_THAT(error.what(), HasSubstr("rank 1"));
  }
}

TEST(ConnectStore, RanksMeetWhoeverComesFirst) {
  as_ranks(4, [](int rank) {
    auto store = connect_store(place_of(rank, 4, "meet"), in(seconds(60)));
    const auto all = exchange(*store, "x", rank, 4, std::to_string(rank), in(seconds(60)));
    EXPECT_EQ(all, std::vector<std::string>({"0", "1", "2", "3"}));
  });
}

TEST(ConnectStore, ContextsOneAfterTheOtherDoNotSeeEachOthersKeys) {
  as_ranks(3, [](int rank) {
    for (int context = 0; context < 5; ++context) {
      auto store = connect_store(place_of(rank, 3, "again"), in(seconds(60)));
      const auto all = exchange(*store, "x", rank, 3, fmt::format("{} of {}", rank, context), in(seconds(60)));
      for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(all[i], fmt::format("{} of {}", i, context));
    }
  });
}

TEST(ConnectStore, ALauncherMayServeInsteadOfRankZero) {
  StoreServerOptions options;
  options.token = "launched";
  options.size = 2;
  const StoreServer server(options);
  as_ranks(2, [&](int rank) {
    Place place = place_of(rank, 2, "launched");
    place.store_host = "127.0.0.1";
    place.store_port = server.port();
    place.token = "launched";
    place.store_served = true;
    auto store = connect_store(place, in(seconds(60)));
    EXPECT_EQ(exchange(*store, "x", rank, 2, "y", in(seconds(60))).size(), 2u);
  });
}

TEST(ConnectStore, OneRankNeedsNobody) {
  auto store = connect_store(Place{}, in(seconds(1)));
  EXPECT_EQ(exchange(*store, "x", 0, 1, "me", in(seconds(1))), std::vector<std::string>({"me"}));
}

TEST(ConnectStore, WithoutRankZeroTheDeadlineHolds) {
  try {
    connect_store(place_of(1, 2, "nobody"), in(milliseconds(100)));
    FAIL() << "nobody serves";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::timeout);
    EXPECT_THAT(error.what(), HasSubstr("rank 1"));
  }
}

TEST(ConnectStore, PrintsTheLineToExport) {
  const auto complaint = [](const Place& place) -> std::string {
    try {
      connect_store(place, in(milliseconds(100)));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid);
      return error.what();
    }
    return "no complaint";
  };
  Place place = place_of(1, 2, "lines");
  place.source = Place::Source::slurm;
  place.token.clear();
  EXPECT_THAT(complaint(place), HasSubstr("export MEDLEY_TOKEN="));
  place.store_host.clear();
  EXPECT_THAT(complaint(place), HasSubstr("export MEDLEY_STORE="));
  EXPECT_THAT(complaint(place), HasSubstr("Slurm"));
}

}  // namespace
}  // namespace medley
