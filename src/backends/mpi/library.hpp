// MPI in this process: initialised once, shared by all contexts, finalised at the end of the process if we started it.
// Every MPI call during operations is made under lock(), since one engine's lock does not exclude another's.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <medley/backend.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <medley/sdk/biased_lock.hpp>
#include <medley/sdk/descriptor.hpp>
#include <medley/sdk/fork_guard.hpp>

namespace medley::mpi {

/// Abandoned requests, with all the memory they may still use.
struct Orphan {
  std::vector<MPI_Request> requests;
  std::unique_ptr<std::byte[]> first;
  std::vector<std::byte> staged;
  std::shared_ptr<const void> memory;  ///< of the operation they were part of (Transfer::abandon)
  std::vector<std::vector<int>> numbers;
  std::vector<std::vector<MPI_Datatype>> types;
};

/// The communicators of a comm.
struct Communicators {
  MPI_Comm users = MPI_COMM_NULL;
  MPI_Comm internal = MPI_COMM_NULL;  ///< for filled-in collectives, whose tags users cannot name, and notices
};

class Library {
 public:
  using Guard = std::lock_guard<BiasedLock>;

  /// One per process; never destroyed, since MPI outlives every context.
  static Library& of_process();
  /// Such as "Open MPI 4.1.4"; MPI need not be initialised for it.
  static std::string version();

  /// Initialises MPI unless it already is. Thread level: SERIALIZED, or MULTIPLE when MEDLEY_MPI_THREADS=multiple says
  /// that the application calls MPI from its own threads too.
  void start();

  BiasedLock& lock() { return lock_; }
  int largest_tag() const { return largest_tag_; }
  /// Elements or bytes per MPI call; larger operations take several. MEDLEY_MPI_CHUNK lowers it, for tests.
  std::int64_t chunk() const { return chunk_; }
  /// Whether only the thread that initialised MPI may call it, and whether this is another one.
  bool one_thread_only() const { return one_thread_only_; }
  bool wrong_thread() const;
  /// Whether MPI can be called at all: not before it is initialised, after the application has finalised it, or in a
  /// forked child.
  bool usable() const;
  /// Whether this thread may call it now without the risk of waiting for a lost rank.
  bool callable() const { return of_use() && usable() && !wrong_thread(); }
  /// Whether no rank was lost and no thread is stuck in MPI.
  // Relaxed: one word, set once
  bool of_use() const { return lost_rank() < 0 && !stuck_.load(std::memory_order_relaxed); }
  /// Throws when MPI cannot be called, or when a rank was lost: MPI guarantees nothing after that.
  void require_usable() const;

  /// A rank of MPI_COMM_WORLD is dead: MPI is unusable in this process. -1: none is. (relaxed: one word, set once, and
  /// nothing is read behind it)
  void lose(int mpi_rank) noexcept;
  /// Registers processes of this host, so that one can be declared lost by its process id; false: it is unknown.
  void remember_process(int process, int mpi_rank);
  bool lose_process(int process) noexcept;
  /// Makes calls that block on these ranks inside MPI, under lock(). If one of them has died, or the deadline passes,
  /// MPI never returns: this throws, the calls stay on their own thread, and MPI is unusable. They own what they use.
  void call_blocking(const std::vector<int>& mpi_ranks, Deadline deadline, std::function<void()> calls);
  int lost_rank() const { return lost_rank_.load(std::memory_order_relaxed); }  // relaxed: as lose() says
  /// An operation was abandoned: peers may never complete what they share with us.
  void note_abort() { aborted_ = true; }
  /// Keeps it until MPI is done with it.
  void adopt(Orphan orphan);
  /// Frees communicators once every member has closed them in order. MPI reuses the id of a freed communicator, and
  /// messages that were never received would arrive there; so a comm that failed anywhere is never freed.
  void defer_free(const Communicators& comms) noexcept;
  /// Frees the communicators that all members have released, and the memory of orphans that have completed.
  void reclaim() noexcept;

  /// The exit of the process (exit.cpp).
  void remember_farewell(const BackendParams& params);
  void end(int status) noexcept;

 private:
  Library();
  bool all_leave(bool wait) noexcept;
  void say_farewell() noexcept;
  bool said_farewell(int mpi_rank) noexcept;
  void drop_completed_orphans() noexcept;
  void finalize(int status) noexcept;
  /// Whether the process of some rank of this host has exited; that rank is then lost.
  bool lose_dead() noexcept;

  BiasedLock lock_;
  ForkGuard fork_guard_;
  std::mutex starting_;
  bool started_ = false;
  bool ours_ = false;  ///< we initialised it, so we finalise it
  bool one_thread_only_ = false;
  std::atomic<bool> aborted_{false};
  std::atomic<int> lost_rank_{-1};
  std::atomic<bool> stuck_{false};
  struct Process {
    int number, mpi_rank;
    Descriptor file;  ///< a pidfd
  };
  std::mutex processes_mutex_;
  std::vector<Process> processes_;
  int largest_tag_ = 32767;
  std::int64_t chunk_;
  struct DeferredFree {
    Communicators comms;
    MPI_Request everyone;  ///< a barrier of all members
  };
  std::vector<Orphan> orphans_;
  std::vector<DeferredFree> deferred_;
  std::shared_ptr<Store> store_;  ///< of the latest context, for the farewell
  int size_ = 1;
};

}  // namespace medley::mpi
