// Polling started operations: all of a few, a bounded number of many, and their exceptions.
#include "engine/progress.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

#include "engine/scheduling.hpp"

namespace medley::core {
namespace {

using test::make;
using test::TestComm;

struct Counted final : Transfer {
  Poll poll() override {
    ++polls;
    if (on_poll) on_poll();
    return result;
  }
  bool poll_when_ready(PollList& list, Polled& owner) override {
    if (tells) list_ = &list, owner_ = &owner;
    return tells;
  }
  void release() noexcept override {}
  void become_ready() { list_->push_back(*owner_); }
  bool tells = false;  ///< when it wants to be polled
  int polls = 0;
  Poll result = Poll::waiting;
  std::function<void()> on_poll;

 private:
  PollList* list_ = nullptr;
  Polled* owner_ = nullptr;
};

class Polling : public testing::Test, protected Progress::Events {
 protected:
  void add(int count, bool tells = false) {
    for (int i = 0; i < count; ++i) {
      operations_.push_back(make(comm_, Op::send, nullptr, nullptr, false));
      transfers_.push_back(std::make_unique<Counted>());
      transfers_.back()->tells = tells;
      operations_.back()->transfer = transfers_.back().get();
      operations_.back()->launched = true;
      progress_.add(*operations_.back());
    }
  }
  int polls() const {
    int all = 0;
    for (const auto& transfer : transfers_) all += transfer->polls;
    return all;
  }
  void on_complete(Operation& operation) override {
    ++complete_;
    moments_.push_back(progress_.moment());
    progress_.remove(operation);
  }
  void on_error(Operation& operation, const Error& error) override {
    errors_.push_back(error.what());
    progress_.remove(operation);
  }
  void on_poll(Operation&) override {}
  void on_lane_error(LaneState&, const Error& error) override { errors_.push_back(error.what()); }

  TestComm comm_;
  std::vector<OperationRef> operations_;
  std::vector<std::unique_ptr<Counted>> transfers_;
  std::vector<std::string> errors_;
  int complete_ = 0;
  std::vector<std::uint64_t> moments_;  ///< when each was found complete
  Progress progress_{*this};
};

TEST_F(Polling, looks_at_all_of_few) {
  add(100);
  EXPECT_FALSE(progress_.run());
  EXPECT_EQ(polls(), 100);
}

TEST_F(Polling, reads_the_clock_once_for_what_it_finds_complete_and_again_after_work) {
  add(5);
  for (const int i : {0, 1, 3, 4}) transfers_[static_cast<std::size_t>(i)]->result = Poll::complete;
  transfers_[2]->result = Poll::moved;  // it copied something, which took time
  transfers_[2]->on_poll = [] {
    for (const std::uint64_t begun = ticks(); ticks() == begun;) {
    }
  };
  progress_.run();
  ASSERT_EQ(moments_.size(), 4u);
  EXPECT_EQ(moments_[0], moments_[1]);
  EXPECT_LT(moments_[1], moments_[2]);
  EXPECT_EQ(moments_[2], moments_[3]);
  const std::uint64_t end = ticks();
  add(1);
  transfers_.back()->result = Poll::complete;
  progress_.run();
  EXPECT_GE(moments_.back(), end) << "each pass has its own time";
}

TEST_F(Polling, looks_at_a_part_of_many_and_at_each_in_time) {
  add(1000);
  progress_.run();
  EXPECT_EQ(polls(), static_cast<int>(Progress::polled_in_a_pass));
  for (int pass = 0; pass < 16; ++pass) progress_.run();
  for (const auto& transfer : transfers_) EXPECT_GE(transfer->polls, 1);
  const int before = polls();
  progress_.run(Progress::Extent::all);  // before a thread sleeps
  EXPECT_GE(polls(), before + 1000);
  transfers_[0]->result = Poll::moved;
  const int after = polls();
  EXPECT_TRUE(progress_.run(Progress::Extent::all));  // no thread sleeps after that: the rest is for the next pass
  EXPECT_LE(polls(), after + static_cast<int>(Progress::polled_in_a_pass));
}

TEST_F(Polling, completes_and_survives_the_removal_of_others_in_a_pass) {
  add(10);
  transfers_[2]->result = Poll::complete;
  transfers_[2]->on_poll = [this] {
    for (int i : {3, 4, 9}) progress_.remove(*operations_[static_cast<std::size_t>(i)]);
  };
  EXPECT_TRUE(progress_.run());
  EXPECT_EQ(complete_, 1);
  EXPECT_EQ(transfers_[3]->polls + transfers_[4]->polls + transfers_[9]->polls, 0);
  EXPECT_EQ(transfers_[5]->polls, 1);
  EXPECT_EQ(progress_.active(), 6u);
}

TEST_F(Polling, leaves_alone_what_says_when_it_is_ready) {
  add(1000, true);
  EXPECT_FALSE(progress_.run(Progress::Extent::all));
  EXPECT_EQ(polls(), 0);
  for (const std::size_t i : {700u, 3u}) {
    transfers_[i]->result = Poll::complete;
    transfers_[i]->become_ready();
  }
  transfers_[5]->become_ready();  // it needs more than one poll
  EXPECT_TRUE(progress_.run());
  EXPECT_EQ(complete_, 2);
  EXPECT_EQ(transfers_[5]->polls, 2);  // when it asked, and with those that are polled in every pass from then on
  EXPECT_FALSE(progress_.run());
  EXPECT_EQ(polls(), 5);
  EXPECT_EQ(progress_.active(), 1u);
}

TEST_F(Polling, forgets_what_was_ready_and_is_removed) {
  add(2, true);
  for (auto& transfer : transfers_) transfer->become_ready();
  progress_.remove(*operations_[0]);  // its comm failed
  EXPECT_TRUE(progress_.run());
  EXPECT_EQ(transfers_[0]->polls, 0);
  EXPECT_GE(transfers_[1]->polls, 1);
}

TEST_F(Polling, leaves_alone_what_becomes_ready_after_its_comm_failed) {
  add(1, true);
  operations_[0]->error = Error(ErrorKind::aborted, "its comm failed");
  progress_.remove(*operations_[0]);
  transfers_[0]->result = Poll::complete;
  transfers_[0]->become_ready();  // its message arrived during the abort
  progress_.run();
  EXPECT_EQ(transfers_[0]->polls, 0);
  EXPECT_EQ(complete_, 0) << "it would end well, and its operation would be used again with the error";
}

TEST_F(Polling, no_thread_sleeps_after_a_pass_in_which_another_became_ready) {
  add(1);
  add(1, true);
  transfers_[0]->on_poll = [this] {
    // A started message received what was there for another
    if (transfers_[0]->polls == 1) transfers_[1]->become_ready();
  };
  EXPECT_TRUE(progress_.run(Progress::Extent::all));
  transfers_[1]->result = Poll::complete;
  EXPECT_TRUE(progress_.run());
  EXPECT_EQ(complete_, 1);
}

TEST_F(Polling, turns_any_exception_into_an_error_of_that_operation) {
  add(3);
  transfers_[0]->on_poll = [] { throw std::runtime_error("a library's own"); };
  transfers_[1]->on_poll = [] { throw 7; };
  EXPECT_TRUE(progress_.run());
  ASSERT_EQ(errors_.size(), 2u);
  EXPECT_NE(errors_[0].find("a library's own"), std::string::npos);
  EXPECT_EQ(transfers_[2]->polls, 1);
}

TEST(BackoffSteps, polls_then_yields_then_sleeps_longer_each_time) {
  using namespace std::chrono_literals;
  Backoff backoff;
  const Waiting waiting{.policy = {.spins = 3, .yields = 2}};
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(backoff.step(waiting)) << i;
  EXPECT_TRUE(backoff.step(waiting));
  backoff.reset();
  EXPECT_FALSE(backoff.step(waiting));
  EXPECT_EQ(backoff.next_sleep(waiting), Backoff::short_nap) << "nobody rings";
}

TEST(BackoffSteps, looks_for_deaths_every_20_ms_and_at_once_when_one_is_expected) {
  using namespace std::chrono_literals;
  const Deadline now = std::chrono::steady_clock::now();
  Deadline last{};
  Backoff backoff;
  EXPECT_TRUE(backoff.check_due(now, last));
  EXPECT_FALSE(Backoff().check_due(now + 19ms, last)) << "also in another wait";
  backoff.expect_loss(true);
  EXPECT_TRUE(backoff.check_due(now + 19ms, last));
  EXPECT_EQ(last, now + 19ms);
}

}  // namespace
}  // namespace medley::core
