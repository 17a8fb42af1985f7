// The behaviour of every store, checked in process and over a socket of each kind.
#include "bootstrap/store.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <medley/error.hpp>
#include <thread>

#include "bootstrap/deadlines.hpp"
#include "bootstrap/store_client.hpp"
#include "bootstrap/store_server.hpp"

namespace medley {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::in;

struct Setting {
  std::unique_ptr<StoreServer> server;
  std::shared_ptr<Store> store;
};

Setting served(const std::string& host) {
  StoreServerOptions options;
  options.host = host;
  options.token = "token";
  Setting setting;
  setting.server = std::make_unique<StoreServer>(options);
  setting.store = std::make_shared<StoreClient>(
      StoreAddress{.host = host, .port = setting.server->port(), .ports = 1, .token = "token", .rank = 0, .size = 1},
      in(seconds(20)));
  return setting;
}

struct Kind {
  const char* name;
  std::function<Setting()> make;
};

class AnyStore : public testing::TestWithParam<Kind> {
 protected:
  Setting setting_ = GetParam().make();
  Store& store_ = *setting_.store;
};

INSTANTIATE_TEST_SUITE_P(
    Kinds, AnyStore,
    testing::Values(Kind{"local",
                         [] {
                           return Setting{nullptr, std::make_shared<LocalStore>()};
                         }},
                    Kind{"ipv4", [] { return served("127.0.0.1"); }}, Kind{"ipv6", [] { return served("::1"); }},
                    Kind{"abstract", [] { return served(fmt::format("@medley-test-{}", getpid())); }},
                    Kind{"prefixed",
                         [] {
                           Setting setting = served("127.0.0.1");
                           setting.store = std::make_shared<PrefixStore>(setting.store, "part/");
                           return setting;
                         }}),
    [](const auto& kind) { return kind.param.name; });

TEST_P(AnyStore, GivesBackWhatWasSet) {
  const std::string bytes("a\0b\n\xff", 5);
  store_.set("key", bytes);
  EXPECT_EQ(store_.get("key", in(seconds(5))), bytes);
  EXPECT_EQ(store_.try_get("key"), bytes);
  store_.set("key", "");
  EXPECT_EQ(store_.try_get("key"), "");
  store_.set("", "the empty key");
  EXPECT_EQ(store_.try_get(""), "the empty key");
}

TEST_P(AnyStore, TellsAbsentFromEmpty) { EXPECT_EQ(store_.try_get("absent"), std::nullopt); }

TEST_P(AnyStore, CarriesLargeValues) {
  std::string large((std::size_t{9} << 20) + 7, 'x');
  for (std::size_t i = 0; i < large.size(); i += 4093) large[i] = static_cast<char>(i);
  store_.set("large", large);
  EXPECT_TRUE(store_.get("large", in(seconds(60))) == large);
}

TEST_P(AnyStore, CountsAtomicallyAcrossThreads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this] {
      for (int j = 0; j < 100; ++j) store_.add("count", 3);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(store_.add("count", -200), 1000);
  EXPECT_EQ(store_.try_get("count"), "1000");
}

TEST_P(AnyStore, RefusesToAddToText) {
  store_.set("text", "12a");
  EXPECT_THROW(store_.add("text", 1), Error);
  store_.set("most", "9223372036854775807");
  EXPECT_THROW(store_.add("most", 1), Error);
  EXPECT_EQ(store_.add("fresh", 5), 5) << "the store goes on after a refusal";
}

TEST_P(AnyStore, AWaitingGetIsAnsweredBySetAndByAdd) {
  std::thread first([this] { EXPECT_EQ(store_.get("later", in(seconds(60))), "now"); });
  std::thread second([this] { EXPECT_EQ(store_.get("counter", in(seconds(60))), "7"); });
  store_.set("later", "now");
  store_.add("counter", 7);
  first.join();
  second.join();
}

TEST_P(AnyStore, ALongGetHoldsNobodyUp) {
  std::atomic<bool> done = false;
  std::thread waiter([&] {
    store_.get("end", in(seconds(60)));
    done = true;
  });
  for (int i = 0; i < 50; ++i) store_.set("other", std::to_string(i));
  EXPECT_FALSE(done);
  store_.set("end", "");
  waiter.join();
}

TEST_P(AnyStore, AGetThatNobodyAnswersEndsAtItsDeadline) {
  try {
    store_.get("never", in(milliseconds(50)));
    FAIL() << "nobody set it";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::timeout);
    EXPECT_NE(std::string(error.what()).find("never"), std::string::npos);
  }
  store_.set("never", "now it is");
  EXPECT_EQ(store_.get("never", in(seconds(5))), "now it is") << "a timeout leaves the store usable";
}

TEST_P(AnyStore, ErasesAKeyOrAllThatStartAlike) {
  for (const char* key : {"a/1", "a/2", "a", "b/1", "a0"}) store_.set(key, "x");
  store_.erase("a");
  store_.erase("not there");
  store_.erase_prefix("a/");
  EXPECT_EQ(store_.try_get("a"), std::nullopt);
  EXPECT_EQ(store_.try_get("a/1"), std::nullopt);
  EXPECT_EQ(store_.try_get("a/2"), std::nullopt);
  EXPECT_EQ(store_.try_get("b/1"), "x");
  EXPECT_EQ(store_.try_get("a0"), "x");
}

TEST(PrefixStore, PartsDoNotSeeEachOther) {
  auto whole = std::make_shared<LocalStore>();
  PrefixStore first(whole, "1/"), second(whole, "2/");
  first.set("key", "first");
  EXPECT_EQ(second.try_get("key"), std::nullopt);
  second.set("key", "second");
  first.erase_prefix("");
  EXPECT_EQ(second.try_get("key"), "second");
}

TEST(StoreClient, AServerThatEndsIsAnErrorNotAHang) {
  Setting setting = served("127.0.0.1");
  std::thread waiter([&] {
    try {
      setting.store->get("never", in(seconds(60)));
      ADD_FAILURE() << "the server ended";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::rank_lost) << error.what();
    }
  });
  while (setting.server->drain(milliseconds(0))) std::this_thread::yield();
  setting.server.reset();
  waiter.join();
  EXPECT_THROW(setting.store->set("a", "b"), Error);
}

TEST(StoreClient, AForkedChildIsRefusedAndHarmsNobody) {
  Setting setting = served("127.0.0.1");
  setting.store->set("a", "1");
  const pid_t child = fork();
  if (child == 0) {
    int status = 1;
    try {
      setting.store->set("a", "2");
    } catch (const Error&) {
      status = 0;
    }
    setting.server.reset();  // must neither join a thread that does not exist nor stop the parent's service
    _exit(status);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(setting.store->try_get("a"), "1");
}

TEST(StoreServer, DrainWaitsForRanksToLeave) {
  Setting setting = served("127.0.0.1");
  EXPECT_FALSE(setting.server->drain(milliseconds(10)));
  setting.store.reset();
  EXPECT_TRUE(setting.server->drain(seconds(20)));
}

TEST(StoreServer, TakesTheNextPortWhenOneIsTaken) {
  StoreServerOptions options;
  options.token = "token";
  StoreServer first(options);
  options.port = first.port();
  EXPECT_THROW(StoreServer{options}, Error);
  options.ports = 8;
  StoreServer second(options);
  EXPECT_GT(second.port(), first.port());
  StoreAddress address{.host = "127.0.0.1", .port = first.port(), .ports = 8, .token = "token", .rank = 1, .size = 2};
  StoreClient client(address, in(seconds(20)));
  client.set("a", "b");
}

}  // namespace
}  // namespace medley
