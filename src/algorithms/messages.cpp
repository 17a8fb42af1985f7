#include "algorithms/messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <medley/sdk/grow.hpp>

namespace medley::algorithms {

Messages::Ticket Messages::send(const void* data, std::size_t bytes, int to) {
  if (bytes == 0) return 0;
  Call call;
  call.op = Op::send;
  call.root = to;
  call.in = data;
  call.in_count = static_cast<std::int64_t>(bytes);
  return start(call);
}

Messages::Ticket Messages::recv(void* data, std::size_t bytes, int from) {
  if (bytes == 0) return 0;
  Call call;
  call.op = Op::recv;
  call.root = from;
  call.out = data;
  call.out_count = static_cast<std::int64_t>(bytes);
  return start(call);
}

Messages::Ticket Messages::start(const Call& message) {
  Call call = message;
  call.dtype = DType::u8;
  call.memory = whole_.memory;
  call.stream = whole_.stream;
  call.tag = tag_;
  make_room_for_one(active_);  // a failed allocation must not lose a transfer
  Transfer* transfer = lane_.start(call);
  moved_ = true;
  if (!transfer) return 0;
  const bool receive = message.op == Op::recv;
  active_.push_back({++last_, transfer, message.root, receive ? message.out_count : -1});
  return last_;
}

/// The backend refuses a message that is too long; one that is too short would leave stale bytes in the buffer.
void Messages::check_length(const Active& receive) {
  if (receive.expected < 0) return;
  const std::int64_t came = receive.transfer->received();
  if (came < 0 || came == receive.expected) return;
  throw Error(ErrorKind::mismatch,
              fmt::format("rank {} sent {} bytes where this rank expects {}: the ranks gave different counts",
                          receive.peer, came, receive.expected),
              {.ranks = {receive.peer}});
}

std::size_t Messages::poll() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < active_.size(); ++i) {
    const Poll seen = active_[i].transfer->poll();  // one that throws stays, and is released with the rest
    moved_ = moved_ || seen != Poll::waiting;
    if (seen == Poll::complete) {
      check_length(active_[i]);
      active_[i].transfer->release();
      active_[i].transfer = nullptr;
    }
  }
  for (const Active& active : active_) {
    if (active.transfer) active_[kept++] = active;
  }
  active_.resize(kept);
  return kept;
}

bool Messages::finished(Ticket ticket) {
  const auto is_it = [ticket](const Active& active) { return active.ticket == ticket; };
  if (ticket == 0 || std::none_of(active_.begin(), active_.end(), is_it)) return true;
  poll();
  return std::none_of(active_.begin(), active_.end(), is_it);
}

std::vector<int> Messages::awaited() const {
  std::vector<int> ranks;
  for (const Active& active : active_) {
    // In this comm's ranks: the lane may belong to a comm that numbers them differently.
    if (active.transfer && !active.transfer->awaited().empty()) ranks.push_back(active.peer);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

std::vector<Transfer*> Messages::abandon() noexcept {
  std::vector<Transfer*> left;
  for (const Active& active : active_) {
    if (active.transfer) left.push_back(active.transfer);
  }
  active_.clear();
  return left;
}

}  // namespace medley::algorithms
