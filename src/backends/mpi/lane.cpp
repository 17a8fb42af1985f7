#include "backends/mpi/lane.hpp"

#include <fmt/format.h>

#include "backends/mpi/collectives.hpp"
#include "backends/mpi/errors.hpp"

namespace medley::mpi {
namespace {

std::int64_t bytes_of(const Call& call, std::int64_t count) {
  return count * static_cast<std::int64_t>(size_of(call.dtype));
}

}  // namespace

MpiLane::MpiLane(Communicators comms, const Group& group, bool far)
    : library_(Library::of_process()),
      comms_(comms),
      rank_(group.rank),
      size_(group.size),
      far_(far),
      notices_(comms.internal, group.rank, group.size) {}

MpiLane::~MpiLane() {
  // What a failed lane has left behind still uses its communicators.
  if (failure_ || active_ > 0 || !library_.usable() || library_.wrong_thread()) return;
  const Library::Guard guard(library_.lock());
  library_.bury(comms_);
}

std::unique_ptr<MpiTransfer> MpiLane::take() {
  ++active_;
  if (idle_.empty()) return std::make_unique<MpiTransfer>(*this);
  std::unique_ptr<MpiTransfer> transfer = std::move(idle_.back());
  idle_.pop_back();
  return transfer;
}

void MpiLane::take_back(MpiTransfer* transfer) noexcept {
  --active_;
  idle_.emplace_back(transfer);
}

MpiLane::Channel MpiLane::channel_of(const Call& call) const {
  if (call.tag < 0) return {comms_.internal, -1 - call.tag};
  if (call.tag > library_.largest_tag()) {
    throw Error(ErrorKind::invalid, fmt::format("tag {} is larger than {}, the largest that this MPI has",
                                                call.tag, library_.largest_tag()));
  }
  return {comms_.users, call.tag};
}

Transfer* MpiLane::start(const Call& call) {
  library_.require_usable();
  if (failure_) throw *failure_;
  if (call.op == Op::recv) return receive(call);
  sent_ = true;
  return call.op == Op::send ? send(call) : collective(call);
}

Transfer* MpiLane::send(const Call& call) {
  const auto [comm, tag] = channel_of(call);
  const std::int64_t bytes = bytes_of(call, call.in_count);
  const Library::Guard guard(library_.lock());
  const Bulk bulk(bytes, library_.chunk());
  MPI_Request request = MPI_REQUEST_NULL;
  mpi::check(MPI_Isend(call.in, bulk.count(), bulk.type(), call.root, tag, comm, &request), "MPI_Isend");
  int done = 0;
  mpi::check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  if (done) return nullptr;  // most small ones leave at once
  auto transfer = take();
  transfer->is_message(Op::send, call.root, call.tag, bytes);
  *transfer->request() = request;
  return transfer.release();
}

Transfer* MpiLane::receive(const Call& call) {
  const auto [comm, tag] = channel_of(call);
  const std::int64_t bytes = bytes_of(call, call.out_count);
  auto transfer = take();
  transfer->is_message(Op::recv, call.root, call.tag, bytes);
  const Library::Guard guard(library_.lock());
  const Bulk bulk(bytes, library_.chunk());
  const int from = call.root < 0 ? MPI_ANY_SOURCE : call.root;
  const int code = MPI_Irecv(call.out, bulk.count(), bulk.type(), from, tag, comm, transfer->request());
  if (code != MPI_SUCCESS) --active_;
  mpi::check(code, "MPI_Irecv");
  return transfer.release();
}

Transfer* MpiLane::collective(const Call& call) {
  auto transfer = take();
  transfer->is_collective();
  try {
    const Library::Guard guard(library_.lock());
    start_collective({comms_.users, rank_, size_, library_.chunk()}, call, *transfer);
  } catch (...) {
    transfer.release()->release();
    throw;
  }
  MpiTransfer* started = transfer.release();
  if (!started->empty()) return started;
  started->release();  // nothing to move
  return nullptr;
}

void MpiLane::progress() {
  // A transfer that is polled moves everything in MPI; without one somebody must.
  if (active_ > 0 || !undelivered() || library_.wrong_thread() || !library_.usable()) return;
  const Library::Guard guard(library_.lock());
  int arrived = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, Mailbox::tag, comms_.internal, &arrived, MPI_STATUS_IGNORE);
}

void MpiLane::check() {
  if (failure_) throw *failure_;
  if (library_.wrong_thread() || !library_.usable()) return;
  const Library::Guard guard(library_.lock());
  failure_ = notices_.look();
  if (failure_) throw *failure_;
}

void MpiLane::abort(const Error& why) noexcept {
  library_.note_abort();
  if (why.kind() == ErrorKind::rank_lost) library_.poison(why);
  if (failure_) return;  // the peers know
  failure_ = why;
  if (library_.wrong_thread() || !library_.usable()) return;
  const Library::Guard guard(library_.lock());
  notices_.tell_everyone(why, library_);
}

}  // namespace medley::mpi
