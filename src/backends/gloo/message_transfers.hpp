// A send or receive in flight. Private to the tag matcher.
#pragma once

#include "backends/gloo/tag_matcher.hpp"

namespace medley::gloo_backend {

class TagMatcher::Message : public Transfer {
 public:
  Message(TagMatcher& of, const Call& call)
      : matcher(of),
        peer(call.root),
        tag(call.tag),
        bytes(bytes_of(call)),
        memory(call.op == Op::send ? nullptr : call.out) {}
  Poll poll() override {
    if (!done.load(std::memory_order_acquire)) {  // pairs with the release store in finish()
      if (matcher.failed_.load(std::memory_order_relaxed)) matcher.throw_if_failed();
      return Poll::waiting;
    }
    if (error) throw *error;
    return Poll::complete;
  }
  std::vector<int> awaited() const override { return peer >= 0 ? std::vector<int>{peer} : std::vector<int>{}; }
  int source() const override { return from; }
  std::int64_t received() const override { return arrived; }

  static std::size_t bytes_of(const Call& call) {
    return static_cast<std::size_t>(call.op == Op::send ? call.in_count : call.out_count) * size_of(call.dtype);
  }
  void finish() {
    Doorbell& doorbell = *matcher.doorbell_;      // this object may be destroyed once `done` is set
    done.store(true, std::memory_order_release);  // pairs with the acquire load in poll()
    doorbell.ring();
  }

  TagMatcher& matcher;
  int peer, tag;
  std::size_t bytes;
  void* memory;
  int from = -1;
  std::int64_t arrived = -1;   ///< bytes
  std::optional<Error> error;  ///< these three are written before `done`
  std::atomic<bool> done{false};
};

class TagMatcher::Receive final : public Message {
 public:
  using Message::Message;
  void release() noexcept override { matcher.forget(*this), delete this; }
};

class TagMatcher::Send final : public Message {
 public:
  using Message::Message;
  void release() noexcept override { matcher.forget(*this), delete this; }
  std::uint64_t number = 0;
  GlooBuffer buffer;
};

}  // namespace medley::gloo_backend
