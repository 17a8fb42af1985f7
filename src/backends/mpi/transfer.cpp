#include "backends/mpi/transfer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/mpi/errors.hpp"
#include "backends/mpi/lane.hpp"
#include "backends/mpi/wire.hpp"

namespace medley::mpi {
namespace {

// MPI may notice the end of a rank or of a comm before the control connection reports it, which it does within moments.
constexpr auto cause_is_told_within = std::chrono::seconds(1);

}  // namespace

std::byte* MpiTransfer::first() {
  if (!first_) first_ = std::make_unique_for_overwrite<std::byte[]>(lane_.wire().first_bytes());
  return first_.get();
}

int MpiTransfer::send_long(const Call& call, std::size_t bytes, Channel begin, Channel rest) {
  peer_ = call.root;
  const std::size_t here = lane_.wire().with_header(bytes);
  if (here > 0) std::memcpy(first(), call.in, here);
  write_header(first() + here, {static_cast<std::int64_t>(bytes), rest.tag});
  int code =
      MPI_Isend(first(), static_cast<int>(here + header_bytes), MPI_BYTE, call.root, begin.tag, begin.comm, request());
  const auto* data = static_cast<const std::byte*>(call.in);
  for (std::size_t at = here, now = 0; at < bytes && code == MPI_SUCCESS; at += now) {
    now = std::min(lane_.wire().slice(bytes), bytes - at);
    const Bulk bulk(static_cast<std::int64_t>(now), lane_.library().chunk());
    code = MPI_Isend(data + at, bulk.count(), bulk.type(), call.root, rest.tag, rest.comm, request());
  }
  return code;
}

int MpiTransfer::post(const Call& call, Channel begin) {
  peer_ = call.root;
  tag_ = call.tag;
  out_ = call.out;
  room_ = call.out_count * static_cast<std::int64_t>(size_of(call.dtype));
  awaits_first_ = true;
  return MPI_Irecv(first(), static_cast<int>(lane_.wire().first_bytes()), MPI_BYTE,
                   call.root < 0 ? MPI_ANY_SOURCE : call.root, begin.tag, begin.comm, request());
}

/// A message that does not fit is still received, so that its sender completes.
void MpiTransfer::take_first(const MPI_Status& status) {
  awaits_first_ = false;
  int came = 0;
  check(MPI_Get_count(&status, MPI_BYTE, &came), "MPI_Get_count");
  source_ = status.MPI_SOURCE;
  auto here = static_cast<std::size_t>(came);
  Header header{.bytes = came, .tag = 0};
  if (lane_.wire().has_header(here)) header = read_header(first() + (here -= header_bytes));
  bytes_ = header.bytes;
  const bool fits = bytes_ <= room_;
  if (fits && here > 0) std::memcpy(out_, first(), here);
  const auto bytes = static_cast<std::size_t>(bytes_);
  if (here == bytes) return;
  std::byte* to = fits ? static_cast<std::byte*>(out_) + here : stage(bytes - here);
  for (std::size_t now = 0; here < bytes; here += now, to += now) {
    now = std::min(lane_.wire().slice(bytes), bytes - here);
    const Bulk bulk(static_cast<std::int64_t>(now), lane_.library().chunk());
    check(MPI_Irecv(to, bulk.count(), bulk.type(), source_, header.tag, lane_.internal(), request()), "MPI_Irecv");
  }
}

std::byte* MpiTransfer::stage(std::size_t bytes) {
  staged_.resize(bytes);
  return staged_.data();
}

int* MpiTransfer::numbers(std::size_t count) { return numbers_.emplace_back(count).data(); }

MPI_Datatype* MpiTransfer::types(std::size_t count) { return types_.emplace_back(count, MPI_BYTE).data(); }

Poll MpiTransfer::poll() {
  if (!failure_.empty()) return await_cause();
  {
    const Library::Guard guard(lane_.library().lock());
    lane_.require_peers();
    for (; next_ < requests_.size(); ++next_) {
      int done = 1, code = code_;
      if (!std::exchange(tested_, false)) code = MPI_Test(&requests_[next_], &done, &status_);
      if (code != MPI_SUCCESS) {
        requests_[next_] = MPI_REQUEST_NULL;  // a request that failed is complete
        note_failure(code, "MPI_Test");
        return await_cause();
      }
      if (!done) return Poll::waiting;
      if (awaits_first_) take_first(status_);
    }
  }
  if (bytes_ > room_) fail_too_long();
  for (const Copy& copy : copies_) std::memcpy(copy.to, staged_.data() + copy.from, copy.bytes);
  copies_.clear();
  return Poll::complete;
}

/// A message that waits for one request is tested together with the lane's others.
bool MpiTransfer::poll_when_ready(PollList& list, Polled& owner) {
  if (peer_ == everyone || next_ + 1 != requests_.size() || !failure_.empty()) return false;
  const Library::Guard guard(lane_.library().lock());
  lane_.posted().add(requests_[next_], this);
  posted_ = true;
  list_ = &list;
  owner_ = &owner;
  return true;
}

void MpiTransfer::tested(const MPI_Status& status, int code) noexcept {
  posted_ = false;
  tested_ = true;
  requests_[next_] = MPI_REQUEST_NULL;
  status_ = status;
  code_ = code;
  list_->push_back(*std::exchange(owner_, nullptr));
}

void MpiTransfer::note_failure(int code, const char* call) {
  if (is_truncation(code)) {
    throw Error(ErrorKind::mismatch, fmt::format("ranks gave different counts: {}", text_of(code)),
                {.ranks = awaited()});
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
  const std::string sent = tag_ < 0 ? fmt::format("rank {} gave other counts: it sent {} bytes", source_, bytes_)
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

/// MPI can only cancel a receive without a message: everything it may still use is kept until it completes, or the
/// process ends.
void MpiTransfer::give_up(std::shared_ptr<const void> memory) noexcept {
  Orphan orphan;
  const Library::Guard guard(lane_.library().lock());
  if (posted_) requests_[next_] = lane_.posted().remove(this);
  if (awaits_first_ && requests_[next_] != MPI_REQUEST_NULL && lane_.library().callable())
    MPI_Cancel(&requests_[next_]);
  for (; next_ < requests_.size(); ++next_) {
    if (requests_[next_] != MPI_REQUEST_NULL) orphan.requests.push_back(requests_[next_]);
  }
  if (orphan.requests.empty()) return;
  orphan.first = std::move(first_);
  orphan.staged = std::move(staged_);
  orphan.memory = std::move(memory);
  orphan.numbers = std::move(numbers_);
  orphan.types = std::move(types_);
  lane_.library().adopt(std::move(orphan));
}

void MpiTransfer::abandon(std::shared_ptr<const void> memory) noexcept {
  if (next_ < requests_.size()) give_up(std::move(memory));
  clear();
  lane_.take_back(this);
}

void MpiTransfer::clear() noexcept {
  next_ = 0;
  source_ = -1;
  out_ = nullptr;
  room_ = bytes_ = 0;
  awaits_first_ = posted_ = tested_ = false;
  code_ = MPI_SUCCESS;
  owner_ = nullptr;
  failure_.clear();
  requests_.clear();
  copies_.clear();
  if (staged_.capacity() > 0) staged_ = {};  // staging of a large operation is not kept for the next
  numbers_.clear();
  types_.clear();
  bulks_.clear();
}

}  // namespace medley::mpi
