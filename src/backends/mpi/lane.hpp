// MPI on one comm: two communicators, one for users' messages and collectives, one for Medley's own messages.
#pragma once

#include <mpi.h>

#include <medley/backend.hpp>
#include <medley/sdk/transfer_ref.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "backends/mpi/library.hpp"
#include "backends/mpi/notice.hpp"
#include "backends/mpi/posted.hpp"
#include "backends/mpi/transfer.hpp"
#include "backends/mpi/wire.hpp"

namespace medley::mpi {

class MpiLane final : public Lane {
 public:
  /// `mpi_ranks`: the members' ranks in MPI_COMM_WORLD. `far`: whether some are on other hosts, where a complete send
  /// may still need progress here.
  MpiLane(Communicators comms, const CommParams& params, std::vector<int> mpi_ranks, bool far);
  ~MpiLane() override;
  MpiLane(const MpiLane&) = delete;
  MpiLane& operator=(const MpiLane&) = delete;

  Transfer* start(const Call& call) override;
  void progress() override;
  bool undelivered() const override { return far_ && sent_ && !failure_; }
  void check() override;
  void abort(const Error& why) noexcept override;

  Library& library() const { return library_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  MPI_Comm internal() const { return comms_.internal; }
  Posted& posted() { return posted_; }
  const Wire& wire() const { return wire_; }
  /// Throws when a rank of the job was lost, a member or not: MPI guarantees nothing after that.
  void require_peers() const {
    if (!library_.of_use()) throw_lost();
  }
  void take_back(MpiTransfer* transfer) noexcept;

 private:
  Channel channel_of(const Call& call) const;
  Channel next_rest();
  Transfer* send(const Call& call);
  template <class Calls>
  Transfer* start_message(const char* called, Calls calls);
  Transfer* receive(const Call& call);
  Transfer* collective(const Call& call);
  TransferRef<MpiTransfer> take();
  bool has_lost_member() const;
  [[noreturn]] void throw_lost() const;

  Library& library_;
  Communicators comms_;
  int rank_, size_;
  std::vector<int> mpi_ranks_;
  bool far_;
  Wire wire_;
  bool sent_ = false;  ///< anything at all
  std::chrono::steady_clock::time_point last_sent_{}, next_probe_{};
  int active_ = 0;
  int rests_ = 0;  ///< long messages sent so far, modulo rest_tags
  Posted posted_;
  Mailbox notices_;
  std::optional<Error> failure_;  ///< an abort, here or on a peer
  std::vector<std::unique_ptr<MpiTransfer>> idle_;
};

}  // namespace medley::mpi
