// A started operation: one MPI request, or several where one call cannot hold it, and the memory they need. Made and reused by the lane.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <medley/backend.hpp>
#include <vector>

#include "backends/mpi/bulk.hpp"
#include "backends/mpi/inbox.hpp"

namespace medley::mpi {

class MpiLane;

class MpiTransfer final : public Transfer {
 public:
  /// In place of a peer where all ranks take part.
  static constexpr int everyone = -2;

  explicit MpiTransfer(MpiLane& lane) : lane_(lane) {}
  Poll poll() override;
  std::vector<int> awaited() const override;
  int source() const override { return source_; }
  std::int64_t received() const override { return out_ ? bytes_ : -1; }
  void release() noexcept override { abandon({}); }
  void abandon(std::shared_ptr<const void> memory) noexcept override;

  /// Whom it involves: a message's peer, or everyone.
  void is_send(int peer);
  void is_receive(const Call& call, const Wanted& wanted);
  void is_collective();

  /// For a receive: whether it has no message yet, its matching criteria, and the message it got.
  bool unmatched() const { return unmatched_; }
  const Wanted& wanted() const { return wanted_; }
  void take(Arrival arrival) noexcept;
  /// MPI refused or failed it. The next polls find the cause, or throw MPI's error.
  void note_failure(int code, const char* call);

  /// Where the next MPI call stores its request.
  MPI_Request* request() { return &requests_.emplace_back(MPI_REQUEST_NULL); }
  bool empty() const { return requests_.empty() && copies_.empty(); }

  /// Staging memory, for the lifetime of the operation.
  std::byte* stage(std::size_t bytes);
  /// Copies staged bytes to their destination once all is complete.
  void copy_back(void* to, std::size_t from, std::size_t bytes) { copies_.push_back({to, from, bytes}); }
  /// Lists that an MPI call reads until it is complete.
  int* numbers(std::size_t count);
  MPI_Datatype* types(std::size_t count);
  const Bulk& keep(Bulk bulk) { return bulks_.emplace_back(std::move(bulk)); }

 private:
  struct Copy {
    void* to;
    std::size_t from, bytes;
  };
  Poll await_cause() const;
  [[noreturn]] void fail_too_long() const;
  void give_up(std::shared_ptr<const void> memory) noexcept;
  void clear() noexcept;

  MpiLane& lane_;
  int peer_ = everyone, source_ = -1;
  bool unmatched_ = false;
  Wanted wanted_;
  int tag_ = 0;                ///< Medley's tag
  void* out_ = nullptr;        ///< of a receive
  std::int64_t room_ = 0;      ///< capacity there, in bytes
  std::int64_t bytes_ = 0;     ///< of its message
  int refused_ = MPI_SUCCESS;  ///< why MPI did not receive its message
  std::string failure_{};      ///< MPI's error when it failed the operation
  Deadline failed_since_{};
  std::size_t next_ = 0;       ///< the first request that is not complete
  std::vector<MPI_Request> requests_;
  std::vector<std::byte> staged_;
  std::vector<Copy> copies_;
  std::vector<std::vector<int>> numbers_;
  std::vector<std::vector<MPI_Datatype>> types_;
  std::vector<Bulk> bulks_;
};

}  // namespace medley::mpi
