// Sends on host memory that leave when they are issued: an eager message over shm or ucx. They never become an
// operation, not even a Call: checks, one copy into the library's memory and a record. Whatever is not as usual takes the
// way of all messages (engine_message.cpp).
#include "engine/adopt_message.hpp"
#include "engine/message_record.hpp"

namespace medley::core {

bool Engine::send_now(CommState& comm, const ConstBuffer& buffer, int to, const Options& options) {
  refuse_forked_child();  // before the lock, which the parent may have held
  handle_events();
  const Hold hold(*this);
  const Route* const route = plain_route(comm, Op::send, buffer.dtype, options.backend);
  if (!route) return false;
  const auto* const begin = static_cast<const std::byte*>(buffer.data);
  const std::int64_t bytes = buffer.bytes();
  LaneState& lane = *route->lane;
  if (!scheduler_.may_start({begin, begin + bytes, false}, lane)) return false;
  const std::uint64_t begun = ticks();
  {
    const ShowInLibrary shown(board_, comm, lane, Op::send, to);
    if (!lane.filled->send_now(to, options.tag, begin, static_cast<std::size_t>(bytes))) return false;
  }
  comm.count(false);
  if (recorder_) [[likely]] {
    const MessageFields fields{Op::send, buffer.dtype, to, options.tag, buffer.count, 0};
    write_message_record(*recorder_, comm, fields, *route, 0, options.async, begun,
                         bytes <= cache_line_bytes ? begun : ticks());
  }
  return true;
}

}  // namespace medley::core
