#include "backends/mpi/transfer.hpp"

#include <fmt/format.h>

#include <cstring>

#include "backends/mpi/errors.hpp"
#include "backends/mpi/lane.hpp"

namespace medley::mpi {
namespace {

// MPI may notice the end of a rank or of a comm before the control connection reports it, which it does within moments.
constexpr auto cause_is_told_within = std::chrono::seconds(1);

}  // namespace

void MpiTransfer::is_send(int peer) {
  peer_ = peer;
}

void MpiTransfer::is_receive(const Call& call, const Wanted& wanted) {
  peer_ = call.root;
  unmatched_ = true;
  wanted_ = wanted;
  tag_ = call.tag;
  out_ = call.out;
  room_ = call.out_count * static_cast<std::int64_t>(size_of(call.dtype));
}

void MpiTransfer::is_collective() {
  peer_ = everyone;
}

/// Must not throw: another receive's poll may have found the message.
void MpiTransfer::take(Arrival arrival) noexcept {
  unmatched_ = false;
  source_ = arrival.source;
  bytes_ = arrival.bytes;
  try {
    // A message that does not fit is still received, so that its sender completes.
    void* to = bytes_ <= room_ ? out_ : stage(static_cast<std::size_t>(bytes_));
    const Bulk bulk(bytes_, lane_.library().chunk());
    refused_ = MPI_Imrecv(to, bulk.count(), bulk.type(), &arrival.message, request());
  } catch (...) {
    refused_ = MPI_ERR_NO_MEM;
  }
  if (refused_ != MPI_SUCCESS) requests_.clear();
}

std::byte* MpiTransfer::stage(std::size_t bytes) {
  staged_.resize(bytes);
  return staged_.data();
}

int* MpiTransfer::numbers(std::size_t count) {
  return numbers_.emplace_back(count).data();
}

MPI_Datatype* MpiTransfer::types(std::size_t count) {
  return types_.emplace_back(count, MPI_BYTE).data();
}

Poll MpiTransfer::poll() {
  if (!failure_.empty()) return await_cause();
  {
    const Library::Guard guard(lane_.library().lock());
    lane_.require_peers();
    if (unmatched_ && !lane_.inbox().look_for(*this)) return Poll::waiting;
    for (; next_ < requests_.size(); ++next_) {
      int done = 0;
      const int code = MPI_Test(&requests_[next_], &done, MPI_STATUS_IGNORE);
      if (code != MPI_SUCCESS) {
        requests_[next_] = MPI_REQUEST_NULL;  // a request that failed is complete
        note_failure(code, "MPI_Test");
        return await_cause();
      }
      if (!done) return Poll::waiting;
    }
  }
  if (bytes_ > room_) fail_too_long();
  if (refused_ != MPI_SUCCESS) {
    note_failure(refused_, "MPI_Imrecv");
    return await_cause();
  }
  for (const Copy& copy : copies_) std::memcpy(copy.to, staged_.data() + copy.from, copy.bytes);
  copies_.clear();
  return Poll::complete;
}

void MpiTransfer::note_failure(int code, const char* call) {
  if (is_truncation(code)) {
    throw Error(ErrorKind::mismatch, fmt::format("ranks gave different counts: {}", text_of(code)), {.ranks = awaited()});
  }
  failure_ = fmt::format("{} failed: {}", call, text_of(code));
  failed_since_ = std::chrono::steady_clock::now();
}

/// Who was lost, or why a peer aborted the comm, is more useful than MPI's "Other MPI error".
Poll MpiTransfer::await_cause() const {
  lane_.require_peers();
  if (std::chrono::steady_clock::now() - failed_since_ < cause_is_told_within) return Poll::waiting;
  throw Error(ErrorKind::system, failure_);
}

void MpiTransfer::fail_too_long() const {
  const std::string sent = tag_ < 0
                               ? fmt::format("rank {} gave other counts: it sent {} bytes", source_, bytes_)
                               : fmt::format("rank {} sent {} bytes with tag {}", source_, bytes_, tag_);
  throw Error(ErrorKind::mismatch, fmt::format("{}, and the receive has room for {}", sent, room_),
              {.ranks = {source_}});
}

std::vector<int> MpiTransfer::awaited() const {
  if (peer_ >= 0) return {peer_};
  std::vector<int> ranks;
  for (int r = 0; r < lane_.size(); ++r) {
    if (r != lane_.rank()) ranks.push_back(r);
  }
  return ranks;
}

/// MPI cannot cancel what it has started: everything it may still use is kept until it completes, or the process ends.
void MpiTransfer::give_up(std::shared_ptr<const void> memory) noexcept {
  Orphan orphan;
  const Library::Guard guard(lane_.library().lock());
  for (; next_ < requests_.size(); ++next_) {
    if (requests_[next_] != MPI_REQUEST_NULL) orphan.requests.push_back(requests_[next_]);
  }
  if (orphan.requests.empty()) return;
  orphan.staged = std::move(staged_);
  orphan.memory = std::move(memory);
  orphan.numbers = std::move(numbers_);
  orphan.types = std::move(types_);
  lane_.library().adopt(std::move(orphan));
}

void MpiTransfer::abandon(std::shared_ptr<const void> memory) noexcept {
  if (unmatched_) lane_.inbox().remove(this);
  if (next_ < requests_.size()) give_up(std::move(memory));
  clear();
  lane_.take_back(this);
}

void MpiTransfer::clear() noexcept {
  next_ = 0;
  source_ = -1;
  unmatched_ = false;
  out_ = nullptr;
  room_ = bytes_ = 0;
  refused_ = MPI_SUCCESS;
  failure_.clear();
  requests_.clear();
  copies_.clear();
  if (staged_.capacity() > 0) staged_ = {};  // staging of a large operation is not kept for the next
  numbers_.clear();
  types_.clear();
  bulks_.clear();
}

}  // namespace medley::mpi
