#include "backends/mpi/lane.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "backends/mpi/collectives.hpp"
#include "backends/mpi/errors.hpp"

namespace medley::mpi {

MpiLane::MpiLane(Communicators comms, const CommParams& params, std::vector<int> mpi_ranks, bool far)
    : library_(Library::of_process()),
      comms_(comms),
      rank_(params.rank),
      size_(params.size),
      mpi_ranks_(std::move(mpi_ranks)),
      far_(far),
      wire_(far),
      notices_(comms.internal, params.rank, params.size) {}

MpiLane::~MpiLane() {
  // What a failed lane left pending still uses its communicators.
  if (failure_ || active_ > 0 || !library_.callable()) return;
  const Library::Guard guard(library_.lock());
  if (library_.of_use()) library_.defer_free(comms_);  // MPI may have been finalised while this waited for the lock
}

TransferRef<MpiTransfer> MpiLane::take() {
  if (idle_.empty()) idle_.push_back(std::make_unique<MpiTransfer>(*this));
  TransferRef<MpiTransfer> transfer(idle_.back().release());
  idle_.pop_back();
  ++active_;
  return transfer;
}

void MpiLane::take_back(MpiTransfer* transfer) noexcept {
  --active_;
  idle_.emplace_back(transfer);
}

Channel MpiLane::channel_of(const Call& call) const {
  if (call.tag < 0) return {comms_.internal, -1 - call.tag};
  if (call.tag > library_.largest_tag()) {
    throw Error(ErrorKind::invalid, fmt::format("tag {} is larger than {}, the largest that this MPI has", call.tag,
                                                library_.largest_tag()));
  }
  return {comms_.users, call.tag};
}

bool MpiLane::has_lost_member() const {
  return std::find(mpi_ranks_.begin(), mpi_ranks_.end(), library_.lost_rank()) != mpi_ranks_.end();
}

void MpiLane::throw_lost() const {
  if (has_lost_member()) {
    const auto member = std::find(mpi_ranks_.begin(), mpi_ranks_.end(), library_.lost_rank());
    const int rank = static_cast<int>(member - mpi_ranks_.begin());
    throw Error(ErrorKind::rank_lost, fmt::format("rank {} was lost", rank), {.ranks = {rank}});
  }
  library_.require_usable();
  throw Error(ErrorKind::rank_lost, "a rank of the job was lost");
}

Transfer* MpiLane::start(const Call& call) {
  require_peers();
  library_.require_usable();
  if (failure_) throw *failure_;
  if (call.op == Op::recv) return receive(call);
  sent_ = true;
  if (far_) last_sent_ = next_probe_ = std::chrono::steady_clock::now();
  return call.op == Op::send ? send(call) : collective(call);
}

Channel MpiLane::next_rest() {
  const int tags = std::min(rest_tags, library_.largest_tag() - first_rest_tag);
  return {comms_.internal, first_rest_tag + (rests_ = (rests_ + 1) % tags)};
}

/// A send or receive whose transfer makes the MPI calls; `calls` returns MPI's code.
template <class Calls>
Transfer* MpiLane::start_message(const char* called, Calls calls) {
  auto transfer = take();
  const Library::Guard guard(library_.lock());
  require_peers();
  if (const int code = calls(*transfer); code != MPI_SUCCESS) transfer->note_failure(code, called);
  return transfer.release();
}

Transfer* MpiLane::send(const Call& call) {
  const Channel channel = channel_of(call);
  const auto bytes = static_cast<std::size_t>(call.in_count) * size_of(call.dtype);
  if (!wire_.is_whole(bytes)) {
    return start_message("MPI_Isend",
                         [&](MpiTransfer& transfer) { return transfer.send_long(call, bytes, channel, next_rest()); });
  }
  const Library::Guard guard(library_.lock());
  require_peers();
  MPI_Request request = MPI_REQUEST_NULL;
  const char* called = "MPI_Isend";
  int code = MPI_Isend(call.in, static_cast<int>(bytes), MPI_BYTE, call.root, channel.tag, channel.comm, &request),
      done = 0;
  if (code == MPI_SUCCESS) {
    called = "MPI_Test";
    code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  }
  if (done && code == MPI_SUCCESS) return nullptr;  // most small messages leave at once
  auto transfer = take();
  transfer->is_send(call.root);
  if (code != MPI_SUCCESS) {
    transfer->note_failure(code, called);
    return transfer.release();
  }
  *transfer->request() = request;
  return transfer.release();
}

Transfer* MpiLane::receive(const Call& call) {
  const Channel channel = channel_of(call);
  return start_message("MPI_Irecv", [&](MpiTransfer& transfer) { return transfer.post(call, channel); });
}

Transfer* MpiLane::collective(const Call& call) {
  auto transfer = take();
  transfer->is_collective();
  {
    const Library::Guard guard(library_.lock());
    require_peers();
    start_collective({comms_.users, rank_, size_, library_.chunk()}, call, *transfer);
  }
  return transfer->empty() ? nullptr : transfer.release();  // empty: there is nothing to transfer
}

void MpiLane::progress() {
  if (failure_) return;  // what is pending is abandoned
  if (!posted_.empty()) {
    const Library::Guard guard(library_.lock());
    require_peers();
    return posted_.test();
  }
  // Polling a transfer progresses everything in MPI; without one somebody else must.
  if (active_ > 0 || !undelivered() || !library_.callable()) return;
  // MPI does not report when it has passed everything to the network. The older the last message, the less likely it is
  // unsent: polls become rarer, and a late message is late by an eighth.
  const auto now = std::chrono::steady_clock::now();
  if (now < next_probe_) return;
  next_probe_ = now + (now - last_sent_) / 8;
  const Library::Guard guard(library_.lock());
  if (!library_.of_use()) return;
  int arrived = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, Mailbox::tag, comms_.internal, &arrived, MPI_STATUS_IGNORE);
}

void MpiLane::check() {
  if (failure_) throw *failure_;
  // After a lost rank MPI is of no more use. A comm that lost none of its ranks goes on over other libraries.
  if (active_ > 0 || has_lost_member()) require_peers();
  if (!library_.callable()) return;
  const Library::Guard guard(library_.lock());
  if (!library_.of_use()) return;
  failure_ = notices_.look();
  if (failure_) throw *failure_;
}

void MpiLane::abort(const Error& why) noexcept {
  library_.note_abort();
  if (failure_) return;  // the peers know already
  failure_ = why;
  if (!library_.callable()) return;
  const Library::Guard guard(library_.lock());
  if (library_.of_use()) notices_.tell_everyone(why, library_);
}

}  // namespace medley::mpi
