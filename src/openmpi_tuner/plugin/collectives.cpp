#include "openmpi_tuner/plugin/collectives.hpp"

#include <algorithm>
#include <climits>

namespace medley::openmpi_tuner {

Collective::Collective(std::string name, std::int64_t largest) : name_(std::move(name)) {
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  set_size(largest);
  in_.resize(static_cast<std::size_t>(part_) * static_cast<std::size_t>(ranks_));
  out_.resize(in_.size());
}

std::int64_t Collective::set_size(std::int64_t bytes) {
  const std::int64_t unit = static_cast<std::int64_t>(sizeof(float)) * ranks_;
  part_ = static_cast<int>(std::clamp<std::int64_t>(bytes / unit, 1, INT_MAX / ranks_));
  return part_ * unit;
}

int Collective::run(MPI_Comm comm) {
  const int whole = part_ * ranks_;
  if (name_ == "allreduce") return MPI_Allreduce(in_.data(), out_.data(), whole, MPI_FLOAT, MPI_SUM, comm);
  if (name_ == "reduce") return MPI_Reduce(in_.data(), out_.data(), whole, MPI_FLOAT, MPI_SUM, 0, comm);
  if (name_ == "reduce_scatter_block")
    return MPI_Reduce_scatter_block(in_.data(), out_.data(), part_, MPI_FLOAT, MPI_SUM, comm);
  if (name_ == "allgather") return MPI_Allgather(in_.data(), part_, MPI_FLOAT, out_.data(), part_, MPI_FLOAT, comm);
  if (name_ == "alltoall") return MPI_Alltoall(in_.data(), part_, MPI_FLOAT, out_.data(), part_, MPI_FLOAT, comm);
  if (name_ == "gather") return MPI_Gather(in_.data(), part_, MPI_FLOAT, out_.data(), part_, MPI_FLOAT, 0, comm);
  if (name_ == "scatter") return MPI_Scatter(in_.data(), part_, MPI_FLOAT, out_.data(), part_, MPI_FLOAT, 0, comm);
  return MPI_Bcast(out_.data(), whole, MPI_FLOAT, 0, comm);
}

/// Rank r sends r + 1 everywhere.
bool Collective::right() const {
  const bool root_only = name_ == "reduce" || name_ == "gather";
  if (root_only && rank_ != 0) return true;
  const bool whole = name_ != "reduce_scatter_block" && name_ != "scatter";
  const bool sum = name_ == "allreduce" || name_ == "reduce" || name_ == "reduce_scatter_block";
  const std::size_t count = static_cast<std::size_t>(part_) * (whole ? static_cast<std::size_t>(ranks_) : 1);
  for (std::size_t i = 0; i < count; ++i) {
    float expected = 1;  // of the root
    if (sum) expected = static_cast<float>(ranks_) * static_cast<float>(ranks_ + 1) / 2;
    if (name_ == "allgather" || name_ == "alltoall" || name_ == "gather")
      expected = static_cast<float>(i / static_cast<std::size_t>(part_) + 1);
    if (out_[i] != expected) return false;
  }
  return true;
}

bool Collective::gives_the_right_result(MPI_Comm comm) {
  std::fill(in_.begin(), in_.end(), static_cast<float>(rank_ + 1));
  std::fill(out_.begin(), out_.end(), name_ == "bcast" && rank_ == 0 ? 1.0f : -1.0f);
  int works = run(comm) == MPI_SUCCESS && right(), everywhere = 0;
  MPI_Allreduce(&works, &everywhere, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return everywhere != 0;
}

}  // namespace medley::openmpi_tuner
