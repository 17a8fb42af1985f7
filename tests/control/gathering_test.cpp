// The all-gather of small strings as a protocol: any number of ranks, any order of messages, late callers, different
// calls.
#include "control/gathering.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <medley/error.hpp>
#include <random>

namespace medley::control {
namespace {

using namespace std::chrono_literals;

/// Ranks and the messages between them, delivered in a random order.
struct Net {
  explicit Net(int size, unsigned seed = 1) : ranks(static_cast<std::size_t>(size)), random(seed) {}
  struct InFlight {
    int from, to;
    Message message;
  };
  void post(int from, std::vector<Gatherings::Outgoing> out) {
    for (auto& item : out) flying.push_back({from, item.to, std::move(item.message)});
    sent += out.size();
  }
  std::shared_ptr<Gathering> call(const std::string& name, const std::vector<int>& members, int place) {
    const int rank = members[static_cast<std::size_t>(place)];
    auto made = std::make_shared<Gathering>(name, members, place, "of " + std::to_string(rank));
    std::vector<Gatherings::Outgoing> out;
    ranks[static_cast<std::size_t>(rank)].start(made, out);
    post(rank, std::move(out));
    return made;
  }
  void deliver_all() {
    while (!flying.empty()) {
      std::swap(flying[random() % flying.size()], flying.back());
      const InFlight next = std::move(flying.back());
      flying.pop_back();
      std::vector<Gatherings::Outgoing> out;
      ranks[static_cast<std::size_t>(next.to)].receive(next.from, next.message, out);
      post(next.to, std::move(out));
    }
  }
  std::vector<Gatherings> ranks;
  std::deque<InFlight> flying;
  std::size_t sent = 0;
  std::mt19937 random;
};

std::vector<int> shuffled(int size, unsigned seed) {
  std::vector<int> members(static_cast<std::size_t>(size));
  for (int r = 0; r < size; ++r) members[static_cast<std::size_t>(r)] = r;
  std::shuffle(members.begin(), members.end(), std::mt19937(seed));
  return members;
}

TEST(Gathering, gives_everyone_everyones_strings_in_two_messages_a_rank) {
  for (int size : {1, 2, 3, 4, 5, 7, 8, 9, 16, 33, 64, 100}) {
    Net net(size, static_cast<unsigned>(size));
    const std::vector<int> members = shuffled(size, 7);
    std::vector<std::shared_ptr<Gathering>> calls;
    for (int place : shuffled(size, 3)) {
      calls.push_back(net.call("comm", members, place));
      if (place % 3 == 0) net.deliver_all();  // some call after messages for them have arrived
    }
    net.deliver_all();
    std::vector<std::string> expected;
    for (int rank : members) expected.push_back("of " + std::to_string(rank));
    for (const auto& call : calls) {
      ASSERT_TRUE(call->done()) << size;
      EXPECT_EQ(call->all(), expected);
    }
    EXPECT_EQ(net.sent, 2 * static_cast<std::size_t>(size - 1));
    for (const Gatherings& rank : net.ranks) EXPECT_EQ(rank.open(), 0u) << "something is left of it";
  }
}

TEST(Gathering, keeps_several_apart) {
  Net net(4);
  const auto a = net.call("a", {0, 1}, 0), b = net.call("b", {1, 0}, 0), c = net.call("b", {1, 0}, 1),
             d = net.call("a", {0, 1}, 1);
  net.deliver_all();
  EXPECT_EQ(a->all(), (std::vector<std::string>{"of 0", "of 1"}));
  EXPECT_EQ(b->all(), (std::vector<std::string>{"of 1", "of 0"}));
  EXPECT_EQ(c->all(), b->all());
  EXPECT_EQ(d->all(), a->all());
}

TEST(Gathering, that_ranks_call_with_different_sizes_is_a_mismatch) {
  for (unsigned seed = 1; seed < 10; ++seed) {
    Net net(3, seed);
    const auto two = net.call("comm", {0, 1}, 0);
    const auto three = net.call("comm", {0, 1, 2}, 1);
    net.deliver_all();
    ASSERT_TRUE(two->done());
    EXPECT_THROW(two->all(), Error);
    ASSERT_TRUE(three->done());
    EXPECT_THROW(three->all(), Error);
  }
}

TEST(Gathering, says_who_has_not_called) {
  Net net(5);
  const std::vector<int> members{4, 3, 2, 1, 0};
  std::shared_ptr<Gathering> asks;
  for (int place : {0, 1, 3}) asks = net.call("comm", members, place);
  net.deliver_all();
  EXPECT_FALSE(asks->done());
  for (int rank : {4, 3, 2, 0}) net.flying.push_back({1, rank, {"gather/ask", std::string("\4\0\0\0comm", 8)}});
  net.deliver_all();
  EXPECT_EQ(asks->not_called(0ms), (std::vector<int>{2, 4}));
}

TEST(Gathering, knows_that_who_asks_has_called) {  // it may leave before it can answer
  Net net(3);
  const std::vector<int> members{0, 1, 2};
  const auto asked = net.call("comm", members, 2);
  net.call("comm", members, 0);
  net.deliver_all();
  net.flying.push_back({0, 2, Gatherings::question("comm")});
  net.deliver_all();
  EXPECT_EQ(asked->not_called(0ms), (std::vector<int>{1}));
}

TEST(Gathering, says_of_a_rank_that_gave_up_that_it_had_called) {
  Net net(3);
  const std::vector<int> members{0, 1, 2};
  const auto waiting = net.call("late", members, 0);
  net.call("late", members, 2);
  net.deliver_all();
  net.ranks[2].abandon("late");
  for (int to : {1, 2}) net.flying.push_back({0, to, Gatherings::question("late")});
  net.deliver_all();
  EXPECT_EQ(waiting->not_called(0ms), std::vector<int>{1});
}

TEST(Gathering, that_was_given_up_leaves_nothing_behind) {
  Net net(3);
  for (int place : {0, 2}) net.call("comm", {0, 1, 2}, place);
  net.deliver_all();
  net.ranks[0].abandon("comm");
  net.ranks[2].abandon("comm");
  net.call("comm", {0, 1, 2}, 1);
  net.deliver_all();
  EXPECT_EQ(net.ranks[0].open(), 0u);
  EXPECT_EQ(net.ranks[2].open(), 0u);
}

TEST(Gathering, takes_no_harm_from_garbage) {
  Net net(2);
  const auto call = net.call("comm", {0, 1}, 0);
  std::vector<Gatherings::Outgoing> out;
  for (const char* kind : {"gather/up", "gather/down", "gather/ask", "gather/called", "gather/else"}) {
    for (const std::string& body :
         {std::string(), std::string("\xff\xff\xff\xff", 4), std::string("\1\0\0\0x", 5), std::string(100, 'x')}) {
      net.ranks[0].receive(1, {kind, body}, out);
    }
  }
  net.call("comm", {0, 1}, 1);
  net.deliver_all();
  EXPECT_EQ(call->all(), (std::vector<std::string>{"of 0", "of 1"}));
}

}  // namespace
}  // namespace medley::control
