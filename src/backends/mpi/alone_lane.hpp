// The lane of a process that no MPI launcher started and that is the only rank of its context. It initialises MPI on
// first use, since a program that merely has MPI installed must not pay for it.
#pragma once

#include <medley/backend.hpp>
#include <memory>

namespace medley::mpi {

class AloneLane final : public Lane {
 public:
  explicit AloneLane(const CommParams& params) : name_(params.name) {}
  Transfer* start(const Call& call) override;
  void progress() override;
  bool undelivered() const override { return lane_ && lane_->undelivered(); }
  void check() override;
  void abort(const Error& why) noexcept override;

 private:
  std::string name_;
  std::unique_ptr<Lane> lane_;
};

}  // namespace medley::mpi
