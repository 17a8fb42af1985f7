// Sends, receives and batches of them.
#include <medley/comm.hpp>

#include <fmt/format.h>

#include "comm/check.hpp"
#include "comm/issue.hpp"

namespace medley {

using core::Checker;

namespace {

[[gnu::always_inline]] inline void check_tag(const Checker& check, int tag) {
  if (tag < 0) [[unlikely]]
    check.refuse(fmt::format("tag {} is negative", tag));
}

[[gnu::always_inline]] inline void check_send(const core::CommState& comm, const ConstBuffer& buffer, int to, int tag) {
  const Checker check{comm, Op::send};
  check.rank("destination", to);
  check.buffer("send", buffer);
  check_tag(check, tag);
}

/// Whether to try the short ways of the engine: for messages that name nothing but a tag and a backend.
[[gnu::always_inline]] inline bool is_plain(Memory memory, const Options& options) {
  return memory == Memory::host && options.algorithm.empty() && options.compress.empty() && !options.feedback;
}

[[gnu::always_inline]] inline Call send_call(const ConstBuffer& buffer, int to, int tag, const Options& options) {
  Call call = core::call_of(Op::send, buffer.dtype, buffer.memory, options);
  call.tag = tag;
  call.root = to;
  call.in = buffer.data;
  call.in_count = buffer.count;
  return call;
}

[[gnu::always_inline]] inline void check_recv(const core::CommState& comm, const Buffer& buffer, int from, int tag) {
  const Checker check{comm, Op::recv};
  if (from != any_source) check.rank("source", from);
  check.buffer("receive", buffer);
  check_tag(check, tag);
}

[[gnu::always_inline]] inline Call recv_call(const Buffer& buffer, int from, int tag, const Options& options) {
  Call call = core::call_of(Op::recv, buffer.dtype, buffer.memory, options);
  call.tag = tag;
  call.root = from;
  call.out = buffer.data;
  call.out_count = buffer.count;
  return call;
}

// Apart, so that the short ways above them need no space for a Call.
[[gnu::noinline]] Work issue_send(const std::shared_ptr<core::CommState>& comm, const ConstBuffer& buffer, int to,
                                  const Options& options) {
  Call call = send_call(buffer, to, options.tag, options);
  return core::issue(comm, call, options);
}

[[gnu::noinline]] Work issue_recv(const std::shared_ptr<core::CommState>& comm, const Buffer& buffer, int from,
                                  const Options& options, int& source) {
  Call call = recv_call(buffer, from, options.tag, options);
  return core::issue(comm, call, options, &source);
}

}  // namespace

Message outgoing(ConstBuffer buffer, int to, int tag) {
  // A send only reads; Message has one buffer for both directions.
  return {true, Buffer(const_cast<void*>(buffer.data), buffer.count, buffer.dtype, buffer.memory, buffer.device), to,
          tag};
}

Message incoming(Buffer buffer, int from, int tag) { return {false, buffer, from, tag}; }

Work Comm::send(const ConstBuffer& buffer, int to, const Options& options) {
  core::CommState& comm = state();
  check_send(comm, buffer, to, options.tag);
  const bool may_be_short = comm.short_sends && is_plain(buffer.memory, options);
  if (may_be_short && comm.engine->send_now(comm, buffer, to, options)) return {};
  return issue_send(state_, buffer, to, options);
}

Work Comm::recv(const Buffer& buffer, int from, const Options& options) {
  check_recv(state(), buffer, from, options.tag);
  Work work;
  const bool may_be_short = options.async && is_plain(buffer.memory, options);
  if (may_be_short && state_->engine->receive(state_, buffer, from, options, work.operation_, work.source_)) [[likely]]
    return work;
  int source = -1;
  work = issue_recv(state_, buffer, from, options, source);
  work.source_ = source;
  return work;
}

Work Comm::sendrecv(const ConstBuffer& out, int to, const Buffer& in, int from, const Options& options) {
  return batch({outgoing(out, to, options.tag), incoming(in, from, options.tag)}, options);
}

Work Comm::batch(std::span<const Message> messages, const Options& options) {
  state();
  if (messages.empty()) return {};
  std::vector<Call> calls;
  for (const auto& [is_send, buffer, peer, tag] : messages) {
    is_send ? check_send(*state_, buffer, peer, tag) : check_recv(*state_, buffer, peer, tag);
    calls.push_back(is_send ? send_call(buffer, peer, tag, options) : recv_call(buffer, peer, tag, options));
  }
  Work work(state_->engine->issue_group(state_, calls, options));
  if (!options.async) work.wait();
  return work;
}

}  // namespace medley
