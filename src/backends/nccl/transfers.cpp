#include "backends/nccl/transfers.hpp"

#include <algorithm>

namespace medley::nccl {

Poll StreamTransfer::poll() {
  if (number_ != 0 && track_.known_complete(number_)) {
    finish();
    return Poll::complete;
  }
  if (number_ != 0 && !track_.due(number_)) return Poll::waiting;
  const cuda::Scope scope(lane_.device_);
  if (number_ == 0) {
    try {
      if (!failed_ && !launch()) return Poll::waiting;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::rank_lost) throw;
      failed_ = error;
    }
    if (failed_) {
      lane_.explain(*failed_);  // throws once the cause is known
      return Poll::waiting;
    }
    if (number_ == 0) note_launched();
    return Poll::moved;
  }
  if (!track_.complete(number_)) {
    look();
    return Poll::waiting;
  }
  finish();
  return Poll::complete;
}

bool StreamTransfer::order(void* stream) {
  const auto behind = static_cast<cudaStream_t>(stream);
  const cuda::OnDevice on(lane_.device_, behind);
  if (stream == call_.stream) track_.note_wait(number_, behind);
  track_.order(number_, behind);
  return true;
}

std::vector<int> StreamTransfer::awaited() const {
  if (call_.op == Op::send || call_.op == Op::recv) return {call_.root};
  // NCCL does not say whom a kernel waits for: it may be any other rank.
  std::vector<int> others;
  for (int r = 0; r < lane_.params_.size; ++r) {
    if (r != lane_.params_.rank) others.push_back(r);
  }
  return others;
}

CollectiveTransfer::CollectiveTransfer(NcclLane& lane, const Call& call) : StreamTransfer(lane, *lane.track_, call) {}

CommView CollectiveTransfer::view() const {
  return {*lane_.comm_, lane_.pairs_, track_.stream(), lane_.params_.rank, lane_.params_.size, lane_.token_};
}

bool CollectiveTransfer::begin() {
  track_.follow(call_);
  call_.dependencies = nullptr;
  if (one_launch(call_)) {
    // NCCL knows its device, and its calls here are allowed in every capture.
    if (!nccl::launch(view(), call_)) return false;
  } else {
    const cuda::Scope scope(lane_.device_);
    task_ = steps(view(), call_);
    if (!launch()) return false;
  }
  note_launched();
  return true;
}

bool CollectiveTransfer::launch() {
  if (!task_) return lane_.comm_->idle();
  // Several steps in one poll, but never a wait.
  for (Poll seen = Poll::moved; seen != Poll::complete;) {
    seen = task_.poll();
    if (seen == Poll::waiting) return false;
  }
  task_ = {};
  return true;
}

bool MessageTransfer::begin() {
  // Now, not at the launch: the dependencies may be gone by the time the channel is connected.
  track_.follow(call_);
  call_.dependencies = nullptr;
  header_ = channel_.take_header();
  if (call_.op == Op::send) {
    header_->bytes = bytes();
    header_->tag = static_cast<std::uint64_t>(call_.tag);
    header_->number = channel_.next_number();
    header_->seal();
  }
  if (!launch()) return false;
  note_launched();
  return true;
}

bool MessageTransfer::launch() {
  if (!channel_.connected()) return false;
  if (begun_) return channel_.idle();
  if (!channel_.has_room()) return false;  // earlier messages of this pair complete first in any case
  begun_ = true;
  return channel_.launch(call_, header_);
}

/// Throws when the received message is not the expected one.
void MessageTransfer::compare() const {
  if (call_.op != Op::recv || !header_->sealed()) return;
  if (header_->tag != static_cast<std::uint64_t>(call_.tag)) {
    throw Error(
        ErrorKind::mismatch,
        fmt::format("a receive with tag {} met a message with tag {} from rank {}: NCCL carries no tags, so receives "
                    "must be posted in the order of the sends; use another backend for tags out of order",
                    call_.tag, header_->tag, call_.root),
        {.ranks = {call_.root}});
  }
  if (header_->bytes != bytes()) {
    throw Error(
        ErrorKind::mismatch,
        fmt::format("a receive of {} bytes met a message of {} bytes from rank {}: NCCL needs equal sizes on both "
                    "sides",
                    bytes(), header_->bytes, call_.root),
        {.ranks = {call_.root}});
  }
}

void MessageTransfer::look() {
  if (call_.op != Op::recv || !header_->sealed() || header_->bytes == bytes()) return;
  try {
    compare();
  } catch (const Error& error) {  // NCCL would wait for the rest for ever
    channel_.break_off(error);
    throw;
  }
}

void MessageTransfer::finish() { compare(); }

MessageTransfer::~MessageTransfer() {
  try {
    // While the kernel may still write the header, no other message gets it.
    if (header_ && (number_ == 0 ? !begun_ : track_.complete(number_))) channel_.give_back(header_);
  } catch (const Error&) {
    // CUDA has failed; the header is leaked.
  }
}

void SelfTransfer::begin() {
  track_.follow(call_);
  call_.dependencies = nullptr;
  auto& waiting = lane_.to_self_;
  const auto meets = [&](const SelfTransfer* other) {
    return other->call_.op != call_.op && other->call_.tag == call_.tag;
  };
  const auto found = std::find_if(waiting.begin(), waiting.end(), meets);
  if (found == waiting.end()) {
    waiting.push_back(this);
    return;
  }
  SelfTransfer* const other = *found;
  waiting.erase(found);
  SelfTransfer& send = call_.op == Op::send ? *this : *other;
  SelfTransfer& receive = call_.op == Op::send ? *other : *this;
  receive.came_ = send.bytes();
  if (receive.came_ > 0 && receive.came_ <= receive.bytes()) {
    cuda::check(cudaMemcpyAsync(receive.call_.out, send.call_.in, static_cast<std::size_t>(receive.came_),
                                cudaMemcpyDeviceToDevice, track_.stream()),
                "cudaMemcpyAsync");
  }
  other->note_launched();
  note_launched();
}

void SelfTransfer::finish() {
  if (call_.op != Op::recv || came_ <= bytes()) return;
  throw Error(ErrorKind::mismatch,
              fmt::format("a receive of {} bytes met a message of {} bytes from this rank itself", bytes(), came_),
              {.ranks = {call_.root}});
}

SelfTransfer::~SelfTransfer() { std::erase(lane_.to_self_, this); }

}  // namespace medley::nccl
