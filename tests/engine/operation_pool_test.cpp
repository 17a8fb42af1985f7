// Operations of complete messages are used again, without anything of the message before.
#include <gtest/gtest.h>

#include <memory>

#include "engine/comm_state.hpp"
#include "engine/operation.hpp"

namespace medley::core {
namespace {

/// A message that has ended as in Engine::settle_message().
Operation* ended_message(const std::shared_ptr<CommState>& comm) {
  Operation* const message = OperationPool::take();
  message->comm = comm;
  message->references = 1;
  message->source = 3;
  message->last_dependent = 17;
  message->reusable = true;
  message->state = Operation::State::complete;
  return message;
}

TEST(OperationPool, AKeptOperationHoldsNoComm) {
  auto comm = std::make_shared<CommState>();
  const std::weak_ptr<CommState> seen = comm;
  Operation* const message = ended_message(comm);
  comm.reset();
  EXPECT_FALSE(seen.expired());
  message->release();
  EXPECT_TRUE(seen.expired()) << "the comm would never be closed";
}

TEST(OperationPool, AnOperationThatIsUsedAgainKnowsNothingOfTheMessageBefore) {
  ended_message(std::make_shared<CommState>())->release();
  const OperationRef next(OperationPool::take());
  EXPECT_EQ(next->comm, nullptr);
  EXPECT_EQ(next->source, -1);
  EXPECT_EQ(next->last_dependent, 0u) << "orders of another engine may be equal";
  EXPECT_FALSE(next->reusable) << "only one that ended well may be kept";
  EXPECT_EQ(next->among_pending.next, nullptr);
}

TEST(OperationPool, AMessageWithAnErrorIsNotKept) {
  Operation* const message = ended_message(nullptr);
  message->reusable = false;
  message->error = Error(ErrorKind::aborted, "its comm failed");
  message->release();
  const OperationRef next(OperationPool::take());
  EXPECT_FALSE(next->error);
}

}  // namespace
}  // namespace medley::core
