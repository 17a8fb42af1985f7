#include "engine/value_exchange.hpp"

#include <algorithm>

#include "engine/comm_state.hpp"

namespace medley::core {
namespace {

const Call in_host_memory{};

Call message(Op op, int peer, int tag) {
  Call call;
  call.op = op;
  call.dtype = DType::u8;
  call.root = peer;
  call.tag = tag;
  return call;
}

}  // namespace

LaneState* exchange_lane(const CommState& comm) {
  const Route* const to_peers = comm.routing.find(message(Op::send, 0, 0), comm.size);
  return to_peers ? to_peers->lane : nullptr;
}

void ValueExchange::tell(Lane& lane, int tag, std::vector<std::int64_t> values, const std::vector<int>& ranks) {
  SentValues& told = open_.emplace_back(SentValues{std::make_shared<const std::vector<std::int64_t>>(std::move(values)), {}});
  told.left.reserve(ranks.size());
  for (int rank : ranks) {
    Call call = message(Op::send, rank, tag);
    call.in = told.values->data();
    call.in_count = static_cast<std::int64_t>(told.values->size() * sizeof(std::int64_t));
    try {
      if (Transfer* transfer = lane.start(call)) told.left.push_back(transfer);
    } catch (...) {
      // The peer has left and needs nothing more, or it is lost, or the lane has failed: the lane itself reports that to
      // operations that wait for it.
    }
  }
  poll(told);
  if (told.left.empty()) open_.pop_back();
}

void ValueExchange::poll(SentValues& told) noexcept {
  std::erase_if(told.left, [&told](Transfer* transfer) {
    try {
      if (transfer->poll() != Poll::complete) return false;
      transfer->release();
    } catch (...) {   // as above
      transfer->abandon(told.values);
    }
    return true;
  });
}

void ValueExchange::poll() noexcept {
  for (SentValues& told : open_) poll(told);
  std::erase_if(open_, [](const SentValues& told) { return told.left.empty(); });
}

void ValueExchange::drop() noexcept {
  for (const SentValues& told : open_) {
    for (Transfer* transfer : told.left) transfer->abandon(told.values);
  }
  open_.clear();
}

ValueQuery::ValueQuery(LaneState& lane, int tag, std::shared_ptr<AgreedValues> agreed)
    : lane_(lane), agreed_(std::move(agreed)), messages_(*lane.filled, in_host_memory, tag) {
  ++lane_.active;
}

void ValueQuery::ask(const std::vector<int>& ranks) {
  told_ = std::make_shared<std::vector<std::vector<std::int64_t>>>(ranks.size(), agreed_->largest);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    messages_.recv((*told_)[i].data(), (*told_)[i].size() * sizeof(std::int64_t), ranks[i]);
  }
  lane_.filled->progress();
}

ValueQuery::~ValueQuery() {
  for (Transfer* transfer : messages_.abandon()) transfer->abandon(told_);
  --lane_.active;
}

bool ValueQuery::answered() {
  if (agreed_->known) return true;
  if (messages_.poll() != 0) return false;
  for (const std::vector<std::int64_t>& told : *told_) {
    std::transform(told.begin(), told.end(), agreed_->largest.begin(), agreed_->largest.begin(),
                   [](std::int64_t a, std::int64_t b) { return std::max(a, b); });
  }
  return agreed_->known = true;
}

}  // namespace medley::core
