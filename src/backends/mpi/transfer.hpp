// A started operation: one request of MPI, or several where one call cannot hold it, and the memory they
// need. Made and reused by the lane.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <medley/backend.hpp>
#include <vector>

#include "backends/mpi/bulk.hpp"

namespace medley::mpi {

class MpiLane;

class MpiTransfer final : public Transfer {
 public:
  /// Stands for a peer where all ranks take part.
  static constexpr int everyone = -2;

  explicit MpiTransfer(MpiLane& lane) : lane_(lane) {}
  Poll poll() override;
  std::vector<int> awaited() const override;
  int source() const override { return source_; }
  void release() noexcept override;

  /// Whom it is about: a message's peer, or everyone.
  void is_message(Op op, int peer, int tag, std::int64_t bytes);
  void is_collective();
  /// Where the next call of MPI puts its request.
  MPI_Request* request() { return &requests_.emplace_back(MPI_REQUEST_NULL); }
  bool empty() const { return requests_.empty() && copies_.empty(); }

  /// Memory of its own, as long as the operation lasts.
  std::byte* stage(std::size_t bytes);
  /// Once all is complete, bytes of the stage go to their place.
  void copy_back(void* to, std::size_t from, std::size_t bytes) { copies_.push_back({to, from, bytes}); }
  /// Lists that a call of MPI reads until it is complete.
  int* numbers(std::size_t count);
  MPI_Datatype* types(std::size_t count);
  const Bulk& keep(Bulk bulk) { return bulks_.emplace_back(std::move(bulk)); }

 private:
  struct Copy {
    void* to;
    std::size_t from, bytes;
  };
  [[noreturn]] void fail(int code, const MPI_Status& status);
  void give_up() noexcept;
  void clear() noexcept;

  MpiLane& lane_;
  Op op_{};
  int peer_ = everyone, tag_ = 0, source_ = -1;
  std::int64_t room_ = 0;
  std::size_t next_ = 0;  ///< the first request that is not complete
  std::vector<MPI_Request> requests_;
  std::vector<std::byte> staged_;
  std::vector<Copy> copies_;
  std::vector<std::vector<int>> numbers_;
  std::vector<std::vector<MPI_Datatype>> types_;
  std::vector<Bulk> bulks_;
};

}  // namespace medley::mpi
