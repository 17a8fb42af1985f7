// Grouped sends and receives of NCCL: the building block of all_to_all, gather, scatter and the v-collectives.
#pragma once

#include <medley/types.hpp>

#include "backends/nccl/collectives.hpp"
#include "backends/nccl/types.hpp"

namespace medley::nccl {

/// A type for moving `count` elements: NCCL's own, or bytes where it has none.
struct Moved {
  ncclDataType_t type;
  std::size_t count;
  Moved(DType dtype, std::int64_t elements) {
    const auto known = arithmetic_type(dtype);
    type = known.value_or(ncclInt8);
    count = static_cast<std::size_t>(elements) * (known ? 1 : size_of(dtype));
  }
};

class Exchange {
 public:
  /// The first exchange of a pattern uses the non-blocking communicator, since connecting waits for the peers.
  Exchange(const CommView& view, DType dtype, Pattern pattern, int root)
      : view_(view),
        dtype_(dtype),
        pattern_(pattern),
        root_(root),
        connected_(Communicator::shares_connections() && view.pairs.connected(pattern, root)),
        comm_(connected_ ? view.comm.fast() : view.comm.get()) {
    view_.comm.accept(ncclGroupStart(), "ncclGroupStart");
  }
  /// A rank's part for itself is sent and received in the same exchange.
  void send(const void* from, std::int64_t count, int to) {
    if (count > 0) {
      const Moved moved(dtype_, count);
      note(ncclSend(from, moved.count, moved.type, to, comm_, view_.stream), "ncclSend");
    } else if (!connected_ && to != view_.rank) {
      note(ncclSend(view_.token, 1, ncclInt8, to, comm_, view_.stream), "ncclSend");
    }
  }
  void recv(void* to, std::int64_t count, int from) {
    if (count > 0) {
      const Moved moved(dtype_, count);
      note(ncclRecv(to, moved.count, moved.type, from, comm_, view_.stream), "ncclRecv");
    } else if (!connected_ && from != view_.rank) {
      note(ncclRecv(view_.token, 1, ncclInt8, from, comm_, view_.stream), "ncclRecv");
    }
  }
  /// False if it continues in the background. The group is closed before any error is thrown.
  bool close() {
    open_ = false;
    const ncclResult_t result = ncclGroupEnd();
    if (failed_ != ncclSuccess) view_.comm.accept(failed_, what_);
    const bool done = view_.comm.accept(result, "ncclGroupEnd");
    view_.pairs.note(pattern_, root_);
    return done;
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange() {
    if (open_) ncclGroupEnd();
  }

 private:
  void note(ncclResult_t result, const char* what) {
    if (result == ncclSuccess || result == ncclInProgress || failed_ != ncclSuccess) return;
    failed_ = result;
    what_ = what;
  }
  const CommView& view_;
  const DType dtype_;
  const Pattern pattern_;
  const int root_;
  const bool connected_;
  const ncclComm_t comm_;
  bool open_ = true;
  ncclResult_t failed_ = ncclSuccess;
  const char* what_ = "";
};

}  // namespace medley::nccl
