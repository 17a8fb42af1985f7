// The adapter for blocking libraries, with a library that blocks until the test releases it.
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <medley/sdk/blocking_adapter.hpp>
#include <mutex>
#include <thread>

namespace medley {
namespace {

using namespace std::chrono_literals;

/// Every perform() waits for a permit, for stop() or for its deadline.
class FakeLibrary final : public BlockingLibrary {
 public:
  int perform(const Call& call, Deadline deadline) override {
    std::unique_lock lock(mutex_);
    begun_.push_back(call.tag);
    changed_.notify_all();
    const bool in_time = changed_.wait_until(lock, deadline, [&] {
      return permitted_ == everything || std::count(permits_.begin(), permits_.end(), call.tag) > 0 ||
             (stopped_ && obeys_);
    });
    if (!in_time) throw Error(ErrorKind::timeout, "the library gave up");
    if (stopped_) throw std::runtime_error("stopped");
    if (call.tag == 1013) throw std::runtime_error("tag 1013 brings bad luck");
    finished_.push_back(call.tag);
    return 7;
  }
  void stop(const Error& why) noexcept override {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    reason_ = why.what();
    changed_.notify_all();
  }
  void permit(int tag) {
    const std::lock_guard lock(mutex_);
    permits_.push_back(tag);
    changed_.notify_all();
  }
  void permit_everything() {
    const std::lock_guard lock(mutex_);
    permitted_ = everything;
    changed_.notify_all();
  }
  void await_begun(std::size_t n) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_.size() >= n; });
  }
  std::vector<int> begun() {
    const std::lock_guard lock(mutex_);
    return begun_;
  }
  std::vector<int> finished() {
    const std::lock_guard lock(mutex_);
    return finished_;
  }
  std::string reason() {
    const std::lock_guard lock(mutex_);
    return reason_;
  }
  void disobey() { obeys_ = false; }

 private:
  static constexpr int everything = 1;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> begun_, finished_, permits_;
  int permitted_ = 0;
  bool stopped_ = false;
  bool obeys_ = true;
  std::string reason_;
};

Call call_of(Op op, int tag, int peer = 0) {
  Call call;
  call.op = op;
  call.tag = tag;
  call.root = peer;
  return call;
}

Poll poll_to_end(Transfer& transfer) {
  Poll seen = Poll::waiting;
  while ((seen = transfer.poll()) == Poll::waiting) std::this_thread::yield();
  return seen;
}

struct BlockingAdapter : testing::Test {
  std::shared_ptr<FakeLibrary> library = std::make_shared<FakeLibrary>();
  std::unique_ptr<BlockingLane> lane = std::make_unique<BlockingLane>(library, 2, 60s);
};

TEST_F(BlockingAdapter, collectives_run_one_at_a_time_and_in_order) {
  std::vector<Transfer*> transfers;
  for (int i = 0; i < 20; ++i) transfers.push_back(lane->start(call_of(i % 2 ? Op::all_reduce : Op::barrier, i)));
  library->await_begun(1);
  EXPECT_EQ(library->begun(), std::vector<int>{0});
  EXPECT_EQ(transfers[0]->poll(), Poll::waiting);
  library->permit_everything();
  for (Transfer* transfer : transfers) {
    EXPECT_EQ(poll_to_end(*transfer), Poll::complete);
    transfer->release();
  }
  std::vector<int> in_order(20);
  for (int i = 0; i < 20; ++i) in_order[static_cast<std::size_t>(i)] = i;
  EXPECT_EQ(library->finished(), in_order);
}

TEST_F(BlockingAdapter, messages_wait_neither_for_collectives_nor_for_other_peers_and_tags) {
  std::vector<Transfer*> transfers{lane->start(call_of(Op::all_reduce, 0)), lane->start(call_of(Op::send, 1, 0)),
                                   lane->start(call_of(Op::send, 2, 1)), lane->start(call_of(Op::recv, 3, 1))};
  library->await_begun(4);  // all four concurrently
  library->permit(3);
  EXPECT_EQ(poll_to_end(*transfers[3]), Poll::complete);
  EXPECT_EQ(transfers[3]->source(), 7);
  EXPECT_EQ(transfers[0]->poll(), Poll::waiting);
  library->permit_everything();
  for (Transfer* transfer : transfers) {
    poll_to_end(*transfer);
    transfer->release();
  }
}

TEST_F(BlockingAdapter, an_exception_of_the_library_becomes_the_operations_error) {
  library->permit_everything();
  Transfer* unlucky = lane->start(call_of(Op::barrier, 1013));
  EXPECT_THROW(poll_to_end(*unlucky), Error);
  unlucky->release();
  Transfer* next = lane->start(call_of(Op::barrier, 1014));
  EXPECT_EQ(poll_to_end(*next), Poll::complete);
  next->release();
}

TEST_F(BlockingAdapter, the_patience_of_the_lane_reaches_the_library) {
  lane = std::make_unique<BlockingLane>(library, 2, 1ms);
  Transfer* transfer = lane->start(call_of(Op::barrier, 1));
  try {
    poll_to_end(*transfer);
    ADD_FAILURE() << "it waited for ever";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::timeout);
  }
  transfer->release();
}

TEST_F(BlockingAdapter, abort_ends_what_runs_drops_what_waits_and_refuses_what_comes) {
  Transfer* running = lane->start(call_of(Op::barrier, 1));
  Transfer* waiting = lane->start(call_of(Op::barrier, 2));
  library->await_begun(1);
  lane->abort(Error(ErrorKind::aborted, "enough"));
  EXPECT_EQ(library->reason(), "enough");
  EXPECT_THROW(poll_to_end(*running), Error);
  EXPECT_THROW(lane->start(call_of(Op::barrier, 3)), Error);
  running->release();
  waiting->release();
  lane.reset();
  EXPECT_EQ(library->begun(), std::vector<int>{1});
}

TEST_F(BlockingAdapter, destruction_with_an_operation_running_stops_the_library) {
  Transfer* running = lane->start(call_of(Op::barrier, 1));
  library->await_begun(1);
  lane.reset();
  EXPECT_NE(library->reason(), "");
  EXPECT_THROW(running->poll(), Error);
  running->release();
}

TEST_F(BlockingAdapter, a_library_that_does_not_obey_keeps_nobody) {
  library->disobey();
  Transfer* running = lane->start(call_of(Op::barrier, 1));
  library->await_begun(1);
  lane->abort(Error(ErrorKind::aborted, "enough"));
  running->release();
  lane.reset();                  // returns though perform() is still running
  library->permit_everything();  // and its thread ends when it returns
}

TEST_F(BlockingAdapter, counts_of_v_forms_are_kept_until_the_worker_reads_them) {
  auto counts = std::make_unique<std::vector<std::int64_t>>(2, 5);
  Call call = call_of(Op::all_gatherv, 1);
  call.out_counts = counts->data();
  call.out_offsets = counts->data();
  Transfer* transfer = lane->start(call);
  counts.reset();
  library->permit_everything();
  EXPECT_EQ(poll_to_end(*transfer), Poll::complete);
  transfer->release();
}

}  // namespace
}  // namespace medley
