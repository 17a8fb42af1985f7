// Async receives on host memory that nothing holds: the call is filled in where the operation keeps it, and the receive
// is posted. Whatever is not as usual takes the way of all messages (engine_message.cpp).
#include "engine/adopt_message.hpp"
#include "engine/message_record.hpp"

namespace medley::core {

bool Engine::receive(const std::shared_ptr<CommState>& shared, const Buffer& buffer, int from, const Options& options,
                     Operation*& pending, int& source) {
  refuse_forked_child();  // before the lock, which the parent may have held
  handle_events();
  CommState& comm = *shared;
  const Hold hold(*this);
  const Route* const route = plain_route(comm, Op::recv, buffer.dtype, options.backend);
  if (!route) return false;
  auto* const begin = static_cast<std::byte*>(buffer.data);
  const Access access{begin, begin + buffer.bytes(), true};
  LaneState& lane = *route->lane;
  if (!scheduler_.may_start(access, lane)) return false;
  comm.count(false);
  Operation* const message = OperationPool::take();
  Call& call = message->call;  // of an earlier message: what those never set is as in a new one
  call.op = Op::recv;
  call.dtype = buffer.dtype;
  call.deterministic = options.deterministic;
  call.root = from;
  call.tag = options.tag;
  call.in = nullptr;
  call.in_count = 0;
  call.out = begin;
  call.out_count = buffer.count;
  call.algorithm = {};
  call.stream = options.stream;
  const std::uint64_t begun = ticks();
  const ShowInLibrary shown(board_, comm, lane, Op::recv, from);
  Transfer* transfer = nullptr;
  bool waits = false;
  try {
    transfer = lane.filled->start(call);
    waits = transfer->poll_when_ready(progress_.ready(), *message);
  } catch (...) {
    pending = fail_taken(*message, shared, options, *route, transfer, begun);
    return true;
  }
  if (!waits) {  // its message is there, or it is polled as usual
    pending = poll_started(*message, shared, options, *route, access, transfer, begun, source);
    return true;
  }
  const MessageFields fields{Op::recv, buffer.dtype, from, options.tag, 0, buffer.count};
  message->record = recorder_ ? write_message_record(*recorder_, comm, fields, *route, 0, true, begun, 0).index : 0;
  adopt_message(*message, shared, comm, options, access, lane, transfer, begun);
  progress_.add_waiting(*message);
  if (thread_) [[unlikely]]
    thread_->nudge();
  pending = message;
  return true;
}

}  // namespace medley::core
