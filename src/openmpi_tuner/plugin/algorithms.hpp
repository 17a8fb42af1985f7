// The algorithms that this Open MPI offers for a collective, read and set through MPI's tool interface, and a
// communicator for each. Used by the sweep.
#pragma once

#include <mpi.h>

#include <string>
#include <utility>
#include <vector>

#include "openmpi_tuner/sweep.hpp"

namespace medley::openmpi_tuner {

/// A variable of coll/tuned that names the algorithm of a collective. Open MPI reads it when it makes a communicator.
class AlgorithmVariable {
 public:
  /// Throws Error(unavailable) if this Open MPI has no such variable.
  explicit AlgorithmVariable(const std::string& collective);
  AlgorithmVariable(const AlgorithmVariable&) = delete;
  AlgorithmVariable& operator=(const AlgorithmVariable&) = delete;
  ~AlgorithmVariable();

  /// As this version numbers them, 0 (its own choice) first.
  const std::vector<Algorithm>& algorithms() const noexcept { return algorithms_; }
  void set(int number);

 private:
  MPI_T_cvar_handle handle_{};
  std::vector<Algorithm> algorithms_;
};

/// A communicator of all ranks whose collectives of one kind use one algorithm.
class ForcedComm {
 public:
  ForcedComm(AlgorithmVariable& variable, const Algorithm& algorithm);
  ForcedComm(ForcedComm&& other) noexcept : comm_(std::exchange(other.comm_, MPI_COMM_NULL)) {}
  ForcedComm& operator=(ForcedComm&&) = delete;
  ~ForcedComm() {
    if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
  }
  MPI_Comm get() const noexcept { return comm_; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

}  // namespace medley::openmpi_tuner
