// Store accesses outside the engine's lock: in order, and a store that fails or does not answer affects nobody else.
#include <medley/sdk/store_agent.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

namespace medley::core {
namespace {

void await(const StoreAgent::TicketRef& ticket) {
  while (!ticket->done()) std::this_thread::yield();
}

TEST(StoreAgent, keeps_the_order_of_accesses) {
  const std::shared_ptr<Store> store = make_local_store();
  StoreAgent agent;
  for (int i = 0; i < 100; ++i) agent.set(store, "key", std::to_string(i));
  const StoreAgent::TicketRef answer = agent.try_get(store, "key");
  await(answer);
  EXPECT_EQ(answer->value(), "99");
  const StoreAgent::TicketRef nothing = agent.try_get(store, "no such key");
  await(nothing);
  EXPECT_FALSE(nothing->value());
}

TEST(StoreAgent, takes_an_exception_for_nothing) {
  StoreAgent agent;
  const StoreAgent::TicketRef answer =
      agent.post([]() -> std::optional<std::string> { throw std::runtime_error("whoever serves it has left"); });
  await(answer);
  EXPECT_FALSE(answer->value());
}

TEST(StoreAgent, finishes_what_was_posted_before_it_goes) {
  const std::shared_ptr<Store> store = make_local_store();
  {
    StoreAgent agent;
    for (int i = 0; i < 20; ++i) agent.set(store, std::to_string(i), "left");
  }
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(store->try_get(std::to_string(i))) << i;
}

TEST(StoreAgent, does_not_wait_for_ever_for_a_store_that_does_not_answer) {
  const auto answers = std::make_shared<std::atomic<bool>>(false);
  StoreAgent::TicketRef stuck;
  {
    StoreAgent agent;
    stuck = agent.post([answers]() -> std::optional<std::string> {
      while (!*answers) std::this_thread::yield();
      return "late";
    });
  }
  EXPECT_FALSE(stuck->done());
  *answers = true;  // the memory it uses still exists
  await(stuck);
  EXPECT_EQ(stuck->value(), "late");
}

}  // namespace
}  // namespace medley::core
