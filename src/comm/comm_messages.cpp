// Sends, receives and batches of them.
#include <medley/comm.hpp>

#include <fmt/format.h>

#include "comm/check.hpp"
#include "comm/issue.hpp"

namespace medley {

using core::Checker;

namespace {

Call message_call(const core::CommState& comm, const Message& message, const Options& options) {
  const Op op = message.is_send ? Op::send : Op::recv;
  const Checker check{comm, op};
  if (message.is_send || message.peer != any_source) check.rank(message.is_send ? "destination" : "source", message.peer);
  check.buffer(message.is_send ? "send" : "receive", message.buffer);
  if (message.tag < 0) check.refuse(fmt::format("tag {} is negative", message.tag));
  Call call = core::call_of(op, message.buffer.dtype, message.buffer.memory, options);
  call.tag = message.tag;
  call.root = message.peer;
  if (message.is_send) {
    call.in = message.buffer.data;
    call.in_count = message.buffer.count;
  } else {
    call.out = message.buffer.data;
    call.out_count = message.buffer.count;
  }
  return call;
}

}  // namespace

Message outgoing(ConstBuffer buffer, int to, int tag) {
  // A send only reads; Message has one buffer for both directions.
  return {true, Buffer(const_cast<void*>(buffer.data), buffer.count, buffer.dtype, buffer.memory, buffer.device), to, tag};
}

Message incoming(Buffer buffer, int from, int tag) { return {false, buffer, from, tag}; }

Work Comm::send(const ConstBuffer& buffer, int to, const Options& options) {
  Call call = message_call(state(), outgoing(buffer, to, options.tag), options);
  return core::issue(state_, call, options);
}

Work Comm::recv(const Buffer& buffer, int from, const Options& options) {
  int source = -1;
  Call call = message_call(state(), incoming(buffer, from, options.tag), options);
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
  for (const Message& message : messages) calls.push_back(message_call(*state_, message, options));
  Work work(state_->engine->issue_group(state_, calls, options));
  if (!options.async) work.wait();
  return work;
}

}  // namespace medley
