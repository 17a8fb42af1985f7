#include "backends/mpi/transfer.hpp"

#include <fmt/format.h>

#include <cstring>

#include "backends/mpi/errors.hpp"
#include "backends/mpi/lane.hpp"

namespace medley::mpi {

void MpiTransfer::is_message(Op op, int peer, int tag, std::int64_t bytes) {
  op_ = op;
  peer_ = peer;
  tag_ = tag;
  room_ = bytes;
}

void MpiTransfer::is_collective() {
  op_ = Op::barrier;
  peer_ = everyone;
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
  {
    const Library::Guard guard(lane_.library().lock());
    for (; next_ < requests_.size(); ++next_) {
      int done = 0;
      MPI_Status status;
      const int code = MPI_Test(&requests_[next_], &done, &status);
      if (code != MPI_SUCCESS) fail(code, status);
      if (!done) return Poll::waiting;
      if (op_ == Op::recv) source_ = status.MPI_SOURCE;
    }
  }
  for (const Copy& copy : copies_) std::memcpy(copy.to, staged_.data() + copy.from, copy.bytes);
  copies_.clear();
  return Poll::complete;
}

void MpiTransfer::fail(int code, const MPI_Status& status) {
  requests_[next_] = MPI_REQUEST_NULL;  // a request that failed is complete
  if (!is_truncation(code)) throw Error(ErrorKind::system, fmt::format("MPI_Test failed: {}", text_of(code)));
  if (op_ != Op::recv) {
    throw Error(ErrorKind::mismatch, fmt::format("ranks gave different counts: {}", text_of(code)),
                {.ranks = awaited()});
  }
  throw Error(ErrorKind::mismatch,
              fmt::format("rank {} sent more with tag {} than the {} bytes that the receive has room for",
                          status.MPI_SOURCE, tag_, room_),
              {.ranks = {status.MPI_SOURCE}});
}

std::vector<int> MpiTransfer::awaited() const {
  if (peer_ >= 0) return {peer_};
  std::vector<int> ranks;
  for (int r = 0; r < lane_.size(); ++r) {
    if (r != lane_.rank()) ranks.push_back(r);
  }
  return ranks;
}

/// A receive that has no message yet can be taken back. For the rest MPI has no way back: it is kept until it
/// completes by itself, or the process ends.
void MpiTransfer::give_up() noexcept {
  Orphan orphan;
  const Library::Guard guard(lane_.library().lock());
  for (; next_ < requests_.size(); ++next_) {
    MPI_Request& request = requests_[next_];
    if (request == MPI_REQUEST_NULL) continue;
    int done = 0;
    if (op_ == Op::recv && MPI_Cancel(&request) == MPI_SUCCESS) {
      for (int tries = 0; tries < 100 && !done; ++tries) {
        if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) done = 1;
      }
    }
    if (!done) orphan.requests.push_back(request);
  }
  if (orphan.requests.empty()) return;
  orphan.memory = std::move(staged_);
  orphan.numbers = std::move(numbers_);
  orphan.types = std::move(types_);
  lane_.library().adopt(std::move(orphan));
}

void MpiTransfer::release() noexcept {
  if (next_ < requests_.size() && lane_.library().usable() && !lane_.library().wrong_thread()) give_up();
  clear();
  lane_.take_back(this);
}

void MpiTransfer::clear() noexcept {
  next_ = 0;
  source_ = -1;
  requests_.clear();
  copies_.clear();
  if (staged_.capacity() > 0) staged_ = {};  // staging of a large operation is not kept for the next
  numbers_.clear();
  types_.clear();
  bulks_.clear();
}

}  // namespace medley::mpi
