#include "backends/nccl/channel.hpp"

#include <cstring>
#include <utility>

#include "backends/nccl/rendezvous.hpp"

namespace medley::nccl {
namespace {

constexpr std::size_t headers_at_once = 128;                   // one page of pinned memory
constexpr auto store_interval = std::chrono::milliseconds(1);  // each query of the store takes a round trip

}  // namespace

Channel::Channel(const CommParams& params, StoreAgent& store_agent, int device,
                 std::shared_ptr<cuda::DeviceClock> clock, int peer, bool sends)
    : store_agent_(store_agent),
      store_(params.store),
      key_(fmt::format("pair/{}-{}", sends ? params.rank : peer, sends ? peer : params.rank)),
      device_(device),
      peer_(peer),
      sends_(sends),
      track_(device, std::move(clock)) {}

bool Channel::connected() {
  if (broken_) throw *broken_;
  if (connected_) return true;
  const cuda::Scope scope(device_);
  if (!id_ && sends_) {
    id_ = make_id();
    store_agent_.set(store_, key_, to_text(*id_));
  } else if (!id_) {
    const auto now = std::chrono::steady_clock::now();
    if (!looked_ && now < next_look_) return false;
    if (!looked_) looked_ = store_agent_.try_get(store_, key_);
    if (!looked_->done()) return false;
    const StoreAgent::TicketRef answer = std::move(looked_);
    next_look_ = now + store_interval;
    if (!answer->value()) return false;
    id_ = from_text(*answer->value());
    store_agent_.post([store = store_, key = key_]() -> std::optional<std::string> {
      store->erase(key);
      return std::nullopt;
    });
  }
  if (!comm_) comm_ = std::make_unique<Communicator>(2, sends_ ? 0 : 1, *id_);
  if (!comm_->idle()) return false;
  // Both ranks at once, so that messages after the first need not wait for the peer.
  if (Communicator::shares_connections() && !std::exchange(splitting_, true)) comm_->make_fast(sends_ ? 0 : 1);
  connected_ = comm_->idle();
  return connected_;
}

bool Channel::launch(const Call& call, MessageHeader* header) {
  const int peer = sends_ ? 1 : 0;
  // By the message's place in the channel alone: both ranks must take the same communicator.
  const bool first = !std::exchange(pair_connected_, true);
  const ncclComm_t comm = first || !Communicator::shares_connections() ? comm_->get() : comm_->fast();
  const auto count = static_cast<std::size_t>(sends_ ? call.in_count : call.out_count) * size_of(call.dtype);
  ncclResult_t results[4] = {ncclGroupStart(), ncclSuccess, ncclSuccess, ncclSuccess};
  if (sends_) {
    results[1] = ncclSend(header, sizeof *header, ncclInt8, peer, comm, track_.stream());
    if (count > 0) results[2] = ncclSend(call.in, count, ncclInt8, peer, comm, track_.stream());
  } else {
    results[1] = ncclRecv(header, sizeof *header, ncclInt8, peer, comm, track_.stream());
    if (count > 0) results[2] = ncclRecv(call.out, count, ncclInt8, peer, comm, track_.stream());
  }
  results[3] = ncclGroupEnd();
  bool done = true;
  for (ncclResult_t result : results) done = comm_->accept(result, sends_ ? "ncclSend" : "ncclRecv") && done;
  return done;
}

void Channel::look_for_errors() {
  if (comm_ && connected_ && !broken_) comm_->look_for_errors();
}

void Channel::break_off(const Error& why) noexcept {
  if (!broken_) broken_ = why;
  if (comm_) comm_->abort();
}

MessageHeader* Channel::take_header() {
  if (headers_.empty()) {
    const cuda::Scope scope(device_);
    void* page = nullptr;
    cuda::check(cudaHostAlloc(&page, headers_at_once * sizeof(MessageHeader), cudaHostAllocPortable), "cudaHostAlloc");
    auto* first = static_cast<MessageHeader*>(page);
    for (std::size_t i = 0; i < headers_at_once; ++i) headers_.push_back(new (first + i) MessageHeader);
  }
  MessageHeader* header = headers_.back();
  headers_.pop_back();
  *header = {};
  return header;
}

}  // namespace medley::nccl
