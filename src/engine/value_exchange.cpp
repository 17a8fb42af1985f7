#include "engine/value_exchange.hpp"

#include <fmt/format.h>

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

void throw_dropped_exchange(const LaneState& lane, std::string_view what) {
  throw Error(
      ErrorKind::system,
      fmt::format(
          "comm {}: the exchange of {} that decides this route was dropped, because the collective that started it failed while "
          "being issued; abort this comm and make a new one",
          lane.comm->name, what),
      {.comm = lane.comm->name, .backend = lane.name});
}

void ValueExchange::tell(Lane& lane, int tag, std::vector<std::int64_t> values, const std::vector<int>& ranks) {
  SentValues& sent =
      open_.emplace_back(SentValues{std::make_shared<const std::vector<std::int64_t>>(std::move(values)), {}});
  sent.left.reserve(ranks.size());
  for (int rank : ranks) {
    Call call = message(Op::send, rank, tag);
    call.in = sent.values->data();
    call.in_count = static_cast<std::int64_t>(sent.values->size() * sizeof(std::int64_t));
    try {
      if (Transfer* transfer = lane.start(call)) sent.left.push_back(transfer);
    } catch (...) {
      // The peer has left and needs nothing more, or it is lost, or the lane has failed: the lane itself reports that
      // to operations that wait for it.
    }
  }
  poll(sent);
  if (sent.left.empty()) open_.pop_back();
}

void ValueExchange::poll(SentValues& sent) noexcept {
  std::erase_if(sent.left, [&sent](Transfer* transfer) {
    try {
      if (transfer->poll() != Poll::complete) return false;
      transfer->release();
    } catch (...) {  // as above
      transfer->abandon(sent.values);
    }
    return true;
  });
}

void ValueExchange::poll() noexcept {
  for (SentValues& sent : open_) poll(sent);
  std::erase_if(open_, [](const SentValues& sent) { return sent.left.empty(); });
}

void ValueExchange::drop() noexcept {
  for (const SentValues& sent : open_) {
    for (Transfer* transfer : sent.left) transfer->abandon(sent.values);
  }
  open_.clear();
}

ValueQuery::ValueQuery(LaneState& lane, int tag, std::shared_ptr<AgreedValues> agreed)
    : lane_(lane), agreed_(std::move(agreed)), messages_(*lane.filled, in_host_memory, tag) {
  ++lane_.active;
}

void ValueQuery::ask(const std::vector<int>& ranks) {
  received_ = std::make_shared<std::vector<std::vector<std::int64_t>>>(ranks.size(), agreed_->largest);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    messages_.recv((*received_)[i].data(), (*received_)[i].size() * sizeof(std::int64_t), ranks[i]);
  }
  lane_.filled->progress();
}

ValueQuery::~ValueQuery() {
  for (Transfer* transfer : messages_.abandon()) transfer->abandon(received_);
  --lane_.active;
}

bool ValueQuery::answered() {
  if (agreed_->known) return true;
  if (messages_.poll() != 0) return false;
  for (const std::vector<std::int64_t>& values : *received_) {
    std::transform(values.begin(), values.end(), agreed_->largest.begin(), agreed_->largest.begin(),
                   [](std::int64_t a, std::int64_t b) { return std::max(a, b); });
  }
  return agreed_->known = true;
}

}  // namespace medley::core
