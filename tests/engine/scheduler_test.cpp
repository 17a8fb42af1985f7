// When operations may start, without any library: memory, lane order, message order, launches in streams, and the
// dependents of an operation that failed.
#include "engine/scheduler.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "engine/scheduling.hpp"

namespace medley::core {
namespace {

using test::make;
using test::TestComm;

std::byte memory[64];
std::byte* const a = memory;
std::byte* const b = memory + 16;
std::byte* const c = memory + 32;

/// Starts what may start, and launches it unless disabled.
class Started : public testing::Test {
 protected:
  Operation& issue(OperationRef made, bool launch = true) {
    Operation& operation = *made;
    all_.push_back(std::move(made));
    launches_ = launch;
    pending_.push_back(operation);
    scheduler_.add(operation);
    if (operation.blockers == 0) start(operation);
    launches_ = true;
    return operation;
  }
  Operation& collective(TestComm& comm, std::byte* at, bool launch = true) {
    return issue(make(comm, Op::all_reduce, at, at + 16, true), launch);
  }
  void start(Operation& operation) {
    order_.push_back(&operation);
    if (launches_) launch(operation);
  }
  void launch(Operation& operation) {
    operation.launched = true;
    scheduler_.launched(operation);
  }
  void finish(Operation& operation) {
    pending_.erase(operation);
    operation.launched = true;
    operation.state = Operation::State::complete;
    scheduler_.finished(operation);
  }
  void fail(Operation& operation) {
    operation.error = Error(ErrorKind::aborted, "its comm failed");
    scheduler_.withdraw({&operation}, pending_);
    finish(operation);
  }
  bool started(const Operation& operation) const {
    return std::find(order_.begin(), order_.end(), &operation) != order_.end();
  }

  bool launches_ = true;
  PendingList pending_;
  std::vector<OperationRef> all_;
  std::vector<Operation*> order_;
  Scheduler scheduler_{[this](Operation& operation) { start(operation); }};
  TestComm one_, two_, three_;
};

using Scheduling = Started;

TEST_F(Scheduling, waits_for_memory_on_any_lane) {
  Operation& first = collective(one_, a);
  Operation& other = collective(two_, b);
  Operation& second = collective(three_, a);
  EXPECT_TRUE(started(first) && started(other));
  EXPECT_FALSE(started(second));
  finish(first);
  EXPECT_TRUE(started(second));
}

TEST_F(Scheduling, keeps_the_order_of_a_lane) {
  Operation& before = collective(two_, a);
  Operation& held = collective(one_, a);
  Operation& behind = collective(one_, b);  // on free memory, but behind the held one on its lane
  EXPECT_FALSE(started(held) || started(behind));
  finish(before);
  EXPECT_EQ(order_, (std::vector<Operation*>{&before, &held, &behind}));
}

TEST_F(Scheduling, runs_one_collective_at_a_time_where_the_library_needs_that) {
  TestComm serial(false);
  Operation& first = collective(serial, a);
  Operation& second = collective(serial, b);
  EXPECT_FALSE(started(second));
  finish(first);
  EXPECT_TRUE(started(second));
}

TEST_F(Scheduling, gives_a_library_a_bounded_number_of_collectives_at_once) {
  std::vector<std::byte> own(1000 * 16);
  std::vector<Operation*> issued;
  for (std::size_t i = 0; i < 1000; ++i) issued.push_back(&collective(one_, own.data() + 16 * i));
  EXPECT_EQ(order_.size(), 64u);
  Operation& elsewhere = collective(two_, a);
  EXPECT_TRUE(started(elsewhere)) << "another lane has a bound of its own";
  for (Operation* operation : issued) finish(*operation);
  EXPECT_EQ(order_.size(), 1001u);
}

TEST_F(Scheduling, keeps_messages_of_one_peer_and_tag_in_order) {
  Operation& before = collective(two_, a);
  Operation& held = issue(make(one_, Op::recv, a, a + 16, true, 1, 7));
  Operation& same = issue(make(one_, Op::recv, b, b + 16, true, 1, 7));
  Operation& other_tag = issue(make(one_, Op::recv, c, c + 8, true, 1, 8));
  Operation& from_anybody = issue(make(one_, Op::recv, c + 8, c + 16, true, -1, 7));
  Operation& send = issue(make(one_, Op::send, c + 16, c + 24, false, 1, 7));
  EXPECT_FALSE(started(held) || started(same) || started(from_anybody));
  EXPECT_TRUE(started(other_tag) && started(send));
  finish(before);
  EXPECT_EQ(std::vector<Operation*>(order_.end() - 3, order_.end()),
            (std::vector<Operation*>{&held, &same, &from_anybody}));
}

TEST_F(Scheduling, starts_what_an_outsider_held_once_it_is_released) {
  OperationRef made = make(one_, Op::all_reduce, a, a + 16, true);
  Operation& operation = *made;
  Scheduler::hold(operation);
  issue(std::move(made));
  EXPECT_FALSE(started(operation));
  scheduler_.release(operation);
  EXPECT_TRUE(started(operation));
}

TEST_F(Scheduling, waits_for_what_a_failed_one_waited_for) {
  Operation& running = collective(one_, a);
  OperationRef wide = make(two_, Op::all_reduce, a, b + 16, true);
  Operation& fails = issue(std::move(wide));
  Operation& later = collective(three_, a);  // its last writer is the failing operation
  Operation& free = issue(make(three_, Op::send, b, b + 16, false, 1));
  EXPECT_FALSE(started(fails) || started(later) || started(free));
  fail(fails);
  EXPECT_FALSE(started(later)) << "the first one still writes there";
  EXPECT_TRUE(started(free)) << "nothing else is on its memory";
  Operation& newest = issue(make(one_, Op::send, a, a + 16, false, 1));
  EXPECT_FALSE(started(newest));
  finish(running);
  EXPECT_TRUE(started(later));
  finish(later);
  EXPECT_TRUE(started(newest));
}

TEST_F(Scheduling, launches_collectives_in_streams_in_one_order_over_comms) {
  TestComm stream(true, true), other(true, true);
  Operation& first = collective(stream, a, false);  // started, not in its stream yet
  Operation& second = collective(other, b);
  Operation& third = collective(stream, a);
  EXPECT_FALSE(started(second) || started(third));
  EXPECT_TRUE(scheduler_.streams().any_needs_host());
  launch(first);
  EXPECT_TRUE(started(second) && started(third));
  EXPECT_FALSE(scheduler_.streams().any_needs_host()) << "all of them are in streams";
  // It waits in its stream for operations on its memory that its own stream does not already order.
  EXPECT_TRUE(second.follows.empty());
  Operation& across = collective(other, a);
  EXPECT_TRUE(started(across));
  EXPECT_EQ(across.follows, (std::vector<Operation*>{&third}));
}

TEST_F(Scheduling, holds_a_collective_in_streams_while_a_message_connects) {
  TestComm stream(true, true);
  OperationRef send = make(stream, Op::send, a, a + 16, false, 1);
  send->call.memory = Memory::cuda;
  Operation& message = issue(std::move(send), false);
  Operation& held = collective(stream, b);
  EXPECT_FALSE(started(held));
  scheduler_.look_for_late_launches();  // its second has not passed
  EXPECT_FALSE(started(held));
  message.launch_limit = {};
  scheduler_.look_for_late_launches();
  EXPECT_TRUE(started(held));
}

// Rank 1 sends twice, then calls a collective; rank 0 receives once, calls the collective, receives again. The second
// message is launched with the first one's connection, and completes only after the collective.
TEST_F(Scheduling, releases_a_collective_in_streams_once_the_message_has_connected) {
  TestComm stream(true, true);
  Operation& message = issue(make(stream, Op::send, a, a + 16, false), false);
  Operation& held = collective(stream, b);
  EXPECT_FALSE(started(held));
  launch(message);
  EXPECT_TRUE(started(held));
}

TEST_F(Scheduling, holds_collectives_on_the_device_while_one_in_phases_has_launches_left) {
  TestComm stream(true, true), phases(false), other_phases(false), host;
  phases.lane->launches_in_phases = other_phases.lane->launches_in_phases = true;
  Operation& first = collective(phases, a, false);
  Operation& behind = collective(stream, b);
  Operation& also_behind = collective(other_phases, c, false);
  Operation& free = collective(host, memory + 48);
  EXPECT_TRUE(started(first) && started(free));
  EXPECT_FALSE(started(behind) || started(also_behind));
  launch(first);  // its last phase
  EXPECT_TRUE(started(behind) && started(also_behind));
}

TEST_F(Scheduling, holds_collectives_behind_one_in_phases_for_a_second_at_most) {
  TestComm stream(true, true), phases(false);
  phases.lane->launches_in_phases = true;
  Operation& first = collective(phases, a, false);
  Operation& behind = collective(stream, b);
  scheduler_.look_for_late_launches();  // its second has not passed
  EXPECT_FALSE(started(behind));
  first.launch_limit = {};
  scheduler_.look_for_late_launches();
  EXPECT_TRUE(started(behind));
}

TEST_F(Scheduling, keeps_one_in_phases_behind_launches_that_are_held) {
  TestComm stream(true, true), host, phases(false);
  phases.lane->launches_in_phases = true;
  Operation& before = collective(host, a);
  Operation& held = collective(stream, a);
  Operation& behind = collective(phases, b);
  EXPECT_FALSE(started(held) || started(behind));
  finish(before);
  EXPECT_TRUE(started(held) && started(behind));
}

TEST_F(Scheduling, waits_for_a_failed_one_whose_library_may_still_write) {
  struct Running final : Transfer {
    Poll poll() override { return Poll::waiting; }
  } transfer;
  Operation& running = collective(one_, a);
  running.transfer = &transfer;
  Operation& held = collective(one_, a);
  for (Operation* failing : {&running, &held}) failing->error = Error(ErrorKind::aborted, "its comm failed");
  scheduler_.withdraw({&running, &held}, pending_);
  Operation& later = collective(two_, a);
  EXPECT_FALSE(started(later)) << "the abort is not over";
  finish(held);
  EXPECT_FALSE(started(later));
  finish(running);
  EXPECT_TRUE(started(later));
}

TEST_F(Scheduling, waits_for_the_launches_that_a_failed_one_waited_for) {
  TestComm stream(true, true), failing(true, true), phases(false);
  phases.lane->launches_in_phases = true;
  Operation& first = collective(phases, a, false);
  Operation& failed = collective(failing, b);
  Operation& last = collective(stream, b);
  fail(failed);
  EXPECT_FALSE(started(last));
  launch(first);
  EXPECT_TRUE(started(last));
}

TEST_F(Scheduling, keeps_staged_messages_in_order_though_the_library_gets_them_later) {
  OperationRef first = make(one_, Op::send, a, a + 16, false, 1), second = make(one_, Op::send, b, b + 16, false, 1);
  first->call.memory = second->call.memory = Memory::cuda;
  Operation& copying = issue(std::move(first), false);
  Operation& behind = issue(std::move(second));
  EXPECT_FALSE(started(behind));
  launch(copying);
  EXPECT_TRUE(started(behind));
}

}  // namespace
}  // namespace medley::core
