// A started operation: one MPI request, or several where one call cannot hold it, and the memory they need. Made and
// reused by the lane. A receive is posted for the first part of its message, into memory of its own; if there is more,
// the rest is posted to its place.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <medley/backend.hpp>
#include <memory>
#include <vector>

#include "backends/mpi/bulk.hpp"

namespace medley::mpi {

class MpiLane;

/// A communicator and a tag on it.
struct Channel {
  MPI_Comm comm;
  int tag;
};

class MpiTransfer final : public Transfer {
 public:
  /// In place of a peer where all ranks take part.
  static constexpr int everyone = -2;

  explicit MpiTransfer(MpiLane& lane) : lane_(lane) {}
  Poll poll() override;
  bool poll_when_ready(PollList& list, Polled& owner) override;
  std::vector<int> awaited() const override;
  int source() const override { return source_; }
  std::int64_t received() const override { return out_ ? bytes_ : -1; }
  void release() noexcept override { abandon({}); }
  void abandon(std::shared_ptr<const void> memory) noexcept override;

  /// Makes it a collective, or a send or receive whose MPI calls are made by one of the functions below.
  void is_collective() { peer_ = everyone; }
  void is_send(int peer) { peer_ = peer; }
  /// A message that is too long for its first part. Returns MPI's code.
  int send_long(const Call& call, std::size_t bytes, Channel first, Channel rest);
  int post(const Call& call, Channel first);

  /// Its request among those tested together is complete.
  void tested(const MPI_Status& status, int code) noexcept;
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
  friend class Posted;
  Poll await_cause() const;
  void take_first(const MPI_Status& status);
  std::byte* first();
  [[noreturn]] void fail_too_long() const;
  void give_up(std::shared_ptr<const void> memory) noexcept;
  void clear() noexcept;

  MpiLane& lane_;
  int peer_ = everyone, source_ = -1;
  int tag_ = 0;                         ///< Medley's tag
  void* out_ = nullptr;                 ///< of a receive
  std::int64_t room_ = 0;               ///< capacity there, in bytes
  std::int64_t bytes_ = 0;              ///< of its message
  bool awaits_first_ = false;           ///< its posted receive has no message yet
  std::unique_ptr<std::byte[]> first_;  ///< the first part of a message
  // Of a message that is tested together with others (Posted).
  bool posted_ = false, tested_ = false;
  std::size_t place_ = 0;  ///< there
  MPI_Status status_{};    ///< once tested
  int code_ = MPI_SUCCESS;
  PollList* list_ = nullptr;
  Polled* owner_ = nullptr;  ///< to poll it then
  std::string failure_{};    ///< MPI's error when it failed the operation
  Deadline failed_since_{};
  std::size_t next_ = 0;  ///< the first request that is not complete
  std::vector<MPI_Request> requests_;
  std::vector<std::byte> staged_;
  std::vector<Copy> copies_;
  std::vector<std::vector<int>> numbers_;
  std::vector<std::vector<MPI_Datatype>> types_;
  std::vector<Bulk> bulks_;
};

}  // namespace medley::mpi
