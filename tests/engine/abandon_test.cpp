// Memory ownership of an abandoned collective: until its library has released a message, the scratch that the message
// reads or writes is kept, though the transfer, its lane and its caller's lists are gone.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "algorithms/capabilities.hpp"
#include "algorithms/filled_lane.hpp"

namespace medley {
namespace {

/// A message that the library has started and cannot cancel.
struct Held {
  void* out;
  std::size_t bytes;
  std::shared_ptr<const void> memory;
};

class StubbornMessage final : public Transfer {
 public:
  StubbornMessage(std::vector<Held>& held, const Call& call) : held_(held), call_(call) {}
  Poll poll() override { return Poll::waiting; }
  void abandon(std::shared_ptr<const void> memory) noexcept override {
    if (call_.op == Op::recv)
      held_.push_back({call_.out, static_cast<std::size_t>(call_.out_count), std::move(memory)});
    release();
  }

 private:
  std::vector<Held>& held_;
  Call call_;
};

class StubbornLane final : public Lane {
 public:
  explicit StubbornLane(std::vector<Held>& held) : held_(held) {}
  Transfer* start(const Call& call) override { return new StubbornMessage(held_, call); }
  void abort(const Error&) noexcept override {}

 private:
  std::vector<Held>& held_;
};

/// Starts an all_reduce of bf16, which is combined in scratch memory, and abandons it in the given order.
std::vector<Held> give_up(bool release_first, std::size_t count) {
  std::vector<Held> held;
  std::vector<std::uint16_t> values(count, 0x3f80);
  auto lane = std::make_unique<algorithms::FilledLane>(std::make_unique<StubbornLane>(held), core::Capabilities(),
                                                       "stubborn", 0, 2);
  Call call;
  call.op = Op::all_reduce;
  call.dtype = DType::bf16;
  call.algorithm = "recursive_doubling";
  call.in = call.out = values.data();
  call.in_count = call.out_count = static_cast<std::int64_t>(count);
  Transfer* transfer = lane->start(call);
  if (!transfer) throw std::runtime_error("it completed without a peer");
  const Error why(ErrorKind::aborted, "given up");
  if (release_first) transfer->abandon(nullptr);
  lane->abort(why);
  EXPECT_TRUE(lane->poll_abort());
  if (!release_first) transfer->abandon(nullptr);
  lane.reset();
  return held;
}

class Abandon : public testing::TestWithParam<std::tuple<bool, std::size_t>> {};

TEST_P(Abandon, keeps_scratch_until_the_library_has_let_go) {
  const auto [release_first, count] = GetParam();
  std::vector<Held> held = give_up(release_first, count);
  ASSERT_FALSE(held.empty());
  for (const Held& message : held) {
    ASSERT_NE(message.memory, nullptr);
    std::memset(message.out, 0x42, message.bytes);  // late data: a sanitizer reports it if nobody owns the memory
  }
  // Another operation meanwhile gets its own memory.
  std::vector<Held> next = give_up(release_first, count);
  for (const Held& message : held) {
    for (const Held& other : next) EXPECT_NE(message.out, other.out);
    for (std::size_t i = 0; i < message.bytes; ++i) ASSERT_EQ(static_cast<unsigned char*>(message.out)[i], 0x42);
  }
}

INSTANTIATE_TEST_SUITE_P(sizes, Abandon, testing::Combine(testing::Bool(), testing::Values(100u, 8'000u, 400'000u)));

}  // namespace
}  // namespace medley
