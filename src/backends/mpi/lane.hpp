// MPI on one comm: two communicators, one for users' messages and collectives, one for what Medley sends
// itself.
#pragma once

#include <mpi.h>

#include <medley/backend.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "backends/mpi/library.hpp"
#include "backends/mpi/notice.hpp"
#include "backends/mpi/transfer.hpp"

namespace medley::mpi {

class MpiLane final : public Lane {
 public:
  /// `far`: whether some ranks are on other hosts, where a send that is complete may still need us.
  MpiLane(Communicators comms, const Group& group, bool far);
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
  void take_back(MpiTransfer* transfer) noexcept;

 private:
  struct Channel {
    MPI_Comm comm;
    int tag;
  };
  Channel channel_of(const Call& call) const;
  Transfer* send(const Call& call);
  Transfer* receive(const Call& call);
  Transfer* collective(const Call& call);
  std::unique_ptr<MpiTransfer> take();

  Library& library_;
  Communicators comms_;
  int rank_, size_;
  bool far_;
  bool sent_ = false;  ///< anything at all
  int active_ = 0;
  Mailbox notices_;
  std::optional<Error> failure_;  ///< an abort, here or on a peer
  std::vector<std::unique_ptr<MpiTransfer>> idle_;
};

}  // namespace medley::mpi
