// nccl polls the store for a peer's abort, because NCCL itself reports none. Tests what it finds there, and
// the case of a lost store. Over mocks of CUDA and NCCL.
#include "backends/nccl/lane.hpp"

#include <cuda_runtime_api.h>

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "mock.hpp"

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

  std::atomic<bool> gone = false;  // read by the agent's thread
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
    CommParams params;
    params.name = "world";
    params.world_ranks = {0};
    params.store = store;
    params.deadline = deadline_after(60s);
    params.progress = [] {};
    lane = std::make_unique<NcclLane>(params, store_agent, 0, nullptr);
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

/// Sends `count` messages from rank 0 to rank 1, all started before any is polled if `at_once` is set.
void exchange(int count, bool at_once) {
  const auto store = make_local_store();
  const auto rank = [&](int me) {
    StoreAgent agent;
    CommParams params;
    params.name = "world";
    params.rank = me;
    params.size = 2;
    params.world_ranks = {0, 1};
    params.store = store;
    params.deadline = deadline_after(60s);
    params.progress = [] {};
    NcclLane lane(params, agent, 0, nullptr);
    void* memory = nullptr;
    ASSERT_EQ(cudaMalloc(&memory, 1 << 16), cudaSuccess);
    std::vector<Transfer*> open;
    std::size_t next = 0;
    const auto poll_oldest = [&] {
      while (open[next]->poll() != Poll::complete) std::this_thread::yield();
      open[next++]->release();
    };
    for (int i = 0; i < count; ++i) {
      Call call;
      call.op = me == 0 ? Op::send : Op::recv;
      call.dtype = DType::u8;
      call.memory = Memory::cuda;
      call.root = 1 - me;
      (me == 0 ? call.in_count : call.out_count) = 1 + i;
      (me == 0 ? const_cast<void*&>(call.in) : call.out) = memory;
      open.push_back(lane.start(call));
      // The engine starts a message when the one before it is in its stream.
      while (!open.back()->launched() && next + 1 < open.size()) poll_oldest();
      while (!open.back()->launched()) static_cast<void>(open.back()->poll());
      if (!at_once) poll_oldest();
    }
    while (next < open.size()) poll_oldest();
    cudaFree(memory);
  };
  std::thread other(rank, 1);
  rank(0);
  other.join();
}

TEST(NcclLane, MessagesAfterTheFirstAreInTheStreamAtOnce) {
  const int before = mock_nccl_background_launches();
  exchange(1, false);
  const int connecting = mock_nccl_background_launches() - before;
  exchange(20, false);
  EXPECT_EQ(mock_nccl_background_launches() - before, 2 * connecting)
      << "a message after the first was handed to a thread";
}

TEST(NcclLane, MoreMessagesThanNcclTakesAtOnceWaitForEarlierOnes) { exchange(600, true); }

}  // namespace
}  // namespace medley::nccl
