#include "backends/mpi/alone_lane.hpp"

#include "backends/mpi/errors.hpp"
#include "backends/mpi/lane.hpp"

namespace medley::mpi {
namespace {

Communicators of_self() {
  Library& library = Library::of_process();
  library.start();
  const Library::Guard guard(library.lock());
  Communicators comms;
  check(MPI_Comm_dup(MPI_COMM_SELF, &comms.users), "MPI_Comm_dup");
  check(MPI_Comm_set_errhandler(comms.users, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check(MPI_Comm_dup(comms.users, &comms.internal), "MPI_Comm_dup");
  return comms;
}

}  // namespace

Transfer* AloneLane::start(const Call& call) {
  if (!lane_) {
    CommParams self;
    self.name = name_;
    lane_ = std::make_unique<MpiLane>(of_self(), self, std::vector<int>{}, false);
  }
  return lane_->start(call);
}

void AloneLane::progress() {
  if (lane_) lane_->progress();
}

void AloneLane::check() {
  if (lane_) lane_->check();
}

void AloneLane::abort(const Error& why) noexcept {
  if (lane_) lane_->abort(why);
}

}  // namespace medley::mpi
