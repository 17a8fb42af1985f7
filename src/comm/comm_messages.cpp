// Sends, receives and batches of them.
#include <medley/comm.hpp>

#include <fmt/format.h>

#include "comm/check.hpp"
#include "comm/issue.hpp"

namespace medley {

using core::Checker;

namespace {

void check_tag(const Checker& check, int tag) {
  if (tag < 0) [[unlikely]]
    check.refuse(fmt::format("tag {} is negative", tag));
}

[[gnu::always_inline]] inline Call send_call(const core::CommState& comm, const ConstBuffer& buffer, int to, int tag,
               const Options& options) {
  const Checker check{comm, Op::send};
  check.rank("destination", to);
  check.buffer("send", buffer);
  check_tag(check, tag);
  Call call = core::call_of(Op::send, buffer.dtype, buffer.memory, options);
  call.tag = tag;
  call.root = to;
  call.in = buffer.data;
  call.in_count = buffer.count;
  return call;
}

[[gnu::always_inline]] inline Call recv_call(const core::CommState& comm, const Buffer& buffer, int from, int tag, const Options& options) {
  const Checker check{comm, Op::recv};
  if (from != any_source) check.rank("source", from);
  check.buffer("receive", buffer);
  check_tag(check, tag);
  Call call = core::call_of(Op::recv, buffer.dtype, buffer.memory, options);
  call.tag = tag;
  call.root = from;
  call.out = buffer.data;
  call.out_count = buffer.count;
  return call;
}

}  // namespace

Message outgoing(ConstBuffer buffer, int to, int tag) {
  // A send only reads; Message has one buffer for both directions.
  return {true, Buffer(const_cast<void*>(buffer.data), buffer.count, buffer.dtype, buffer.memory, buffer.device), to, tag};
}

Message incoming(Buffer buffer, int from, int tag) { return {false, buffer, from, tag}; }

Work Comm::send(const ConstBuffer& buffer, int to, const Options& options) {
  Call call = send_call(state(), buffer, to, options.tag, options);
  return core::issue(state_, call, options);
}

Work Comm::recv(const Buffer& buffer, int from, const Options& options) {
  int source = -1;
  Call call = recv_call(state(), buffer, from, options.tag, options);
  Work work = core::issue(state_, call, options, &source);
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
    calls.push_back(is_send ? send_call(*state_, buffer, peer, tag, options)
                            : recv_call(*state_, buffer, peer, tag, options));
  }
  Work work(state_->engine->issue_group(state_, calls, options));
  if (!options.async) work.wait();
  return work;
}

}  // namespace medley
