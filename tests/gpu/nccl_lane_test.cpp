// nccl polls the store for a peer's abort, because NCCL itself reports none. Tests what it finds there, and
// the case of a lost store. Over mocks of CUDA and NCCL.
#include "backends/nccl/lane.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace medley::nccl {
namespace {

using namespace std::chrono_literals;

/// A store whose server leaves when the test says so.
class LeavingStore final : public Store {
 public:
  void set(const std::string& key, const std::string& value) override { there().set(key, value); }
  std::string get(const std::string& key, Deadline deadline) override { return there().get(key, deadline); }
  std::optional<std::string> try_get(const std::string& key) override { return there().try_get(key); }
  std::int64_t add(const std::string& key, std::int64_t delta) override { return there().add(key, delta); }
  void erase(const std::string& key) override { there().erase(key); }
  void erase_prefix(const std::string& prefix) override { there().erase_prefix(prefix); }

  std::atomic<bool> gone = false;   // read by the agent's thread
  std::atomic<int> asked_in_vain = 0;

 private:
  Store& there() {
    if (!gone) return *store_;
    ++asked_in_vain;
    throw Error(ErrorKind::system, "the server of the store closed the connection");
  }
  std::shared_ptr<Store> store_ = make_local_store();
};

struct Alone {
  Alone() {
    CommParams group;
    group.name = "world";
    group.world_ranks = {0};
    group.store = store;
    group.deadline = deadline_after(60s);
    group.progress = [] {};
    lane = std::make_unique<NcclLane>(group, store_agent, 0, nullptr);
  }
  /// Checks until the lane has polled the store, which it does only from time to time.
  template <typename Looked>
  void check_until(Looked looked) {
    while (!looked()) {
      lane->check();
      std::this_thread::yield();
    }
  }
  std::shared_ptr<LeavingStore> store = std::make_shared<LeavingStore>();
  StoreAgent store_agent;
  std::unique_ptr<NcclLane> lane;
};

TEST(NcclLane, GoesOnWhenTheStoreHasGone) {
  Alone rank;
  rank.store->gone = true;
  EXPECT_NO_THROW(rank.check_until([&] { return rank.store->asked_in_vain >= 3; }));
}

/// A event_count checks for some time before it gives up a comm (the grace of Engine::look_for_lost), so every
/// check from then on must find the abort.
TEST(NcclLane, KeepsFindingAPeersAbort) {
  Alone rank;
  rank.store->set("aborted", std::to_string(static_cast<int>(ErrorKind::rank_lost)) + " 2 1 3");
  EXPECT_THROW(rank.check_until([] { return false; }), Error);
  for (int again = 0; again < 100; ++again) {
    try {
      rank.lane->check();
      FAIL() << "the abort is forgotten at check " << again;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::rank_lost);
      EXPECT_EQ(error.context().ranks, (std::vector<int>{1, 3}));
    }
  }
  rank.lane->abort(Error(ErrorKind::aborted, "the test is over"));
  EXPECT_NO_THROW(rank.lane->check());
}

}  // namespace
}  // namespace medley::nccl
