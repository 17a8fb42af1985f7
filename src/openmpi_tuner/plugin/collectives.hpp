// One blocking collective of MPI on buffers of a given size, with a check of its result. Used by the sweep.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

namespace medley::openmpi_tuner {

class Collective {
 public:
  /// `largest`: bytes of the whole tensor.
  Collective(std::string name, std::int64_t largest);

  /// A whole number of elements for every rank, at most `bytes`; never less than one element for each.
  std::int64_t set_size(std::int64_t bytes);
  bool rooted() const { return name_ == "bcast" || name_ == "reduce" || name_ == "gather" || name_ == "scatter"; }
  /// Returns MPI's error code.
  int run(MPI_Comm comm);
  /// Fills the buffers, runs it once and compares the result. The same answer on every rank.
  bool gives_the_right_result(MPI_Comm comm);

 private:
  bool right() const;
  std::string name_;
  int rank_ = 0, ranks_ = 1, part_ = 1;  ///< elements of each rank
  std::vector<float> in_, out_;
};

}  // namespace medley::openmpi_tuner
