#include "algorithms/split_lane.hpp"

#include <algorithm>
#include <medley/sdk/transfer_ref.hpp>

#include "algorithms/joined_transfer.hpp"
#include "algorithms/registry.hpp"
#include "algorithms/split_share.hpp"

namespace medley::algorithms {

Transfer* SplitLane::start_part(const Call& call, bool second) {
  Call part = call;
  part.algorithm =
      reduces(call.op) && lanes_.own_reductions[second ? 1 : 0] ? choose(call, ranks_).name : std::string_view{};
  return (second ? lanes_.second : lanes_.first)->start(part);
}

Transfer* SplitLane::start(const Call& call) {
  if (lanes_.on_device && call.memory == Memory::host) return lanes_.on_host->start(call);  // a barrier
  if (!is_collective(call.op)) return lanes_.first->start(call);
  const std::int64_t count = std::max(call.in_count, call.out_count);
  const std::int64_t border =
      divisible(call.op) && !call.list ? first_part(count, share_of(call.algorithm).value_or(default_share)) : count;
  if (border == 0 || border == count) return start_part(call, border != count);  // also where nothing is moved
  TransferRef<JoinedTransfer> whole(new JoinedTransfer(orphans_, this));
  whole->add(start_part(part_of(call, 0, border), false), lanes_.first->in_streams());
  whole->add(start_part(part_of(call, border, count - border), true), lanes_.second->in_streams());
  return whole->done() ? nullptr : whole.release();
}

void SplitLane::progress() {
  lanes_.first->progress();
  lanes_.second->progress();
}

void SplitLane::check() {
  lanes_.first->check();
  lanes_.second->check();
}

void SplitLane::abort(const Error& why) noexcept {
  lanes_.first->abort(why);
  lanes_.second->abort(why);
}

bool SplitLane::poll_abort() noexcept {
  const bool first = lanes_.first->poll_abort(), over = lanes_.second->poll_abort() && first;
  if (over) orphans_.abandon();
  return over;
}

bool SplitLane::poll_close() noexcept {
  bool over = orphans_.poll_close(*this);
  over = lanes_.first->poll_close() && over;
  return lanes_.second->poll_close() && over;
}

}  // namespace medley::algorithms
