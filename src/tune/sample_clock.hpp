// A common start and a common stopwatch for the ranks of one host: a sample is the slowest rank's time after
// the start. Used by `medley bench` and, unchanged, by the plain MPI programs in bench/mpi that it is compared with;
// needs no library.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <medley/sdk/pause.hpp>
#include <memory>
#include <new>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/ticks.hpp"

namespace medley::tune {

/// CLOCK_MONOTONIC: the same for every process of a host, 23 ns a reading where rdtscp takes 18 (EPYC, KVM).
inline std::int64_t now_ns() noexcept { return core::clock_ns(CLOCK_MONOTONIC); }

/// One sample; every rank gets the same values, so that all stop at the same time.
struct Sample {
  double us;                 ///< from the common start to the slowest rank's end, divided by the batch
  double late_us;            ///< how long after the common start the last rank began
  std::int64_t released_ns;  ///< the common start on the host's clock
};

/// A page shared by the ranks of one host: which ranks have arrived, when all start, when each finished.
///
/// Rank 0 creates it and sends name() to the others by any means; they open it; all call meet() once.
/// Then each time() is collective. No library is called between the start and the end of the timed region.
class SampleClock {
 public:
  static SampleClock create(int ranks) { return SampleClock(create_segment(ranks), 0, ranks); }
  static SampleClock open(const std::string& name, int rank, int ranks) {
    if (rank < 0 || rank >= ranks) throw std::invalid_argument("sample clock: no such rank: " + std::to_string(rank));
    return SampleClock(name, rank, ranks);
  }
  ~SampleClock() { unlink(); }
  SampleClock(const SampleClock&) = delete;
  SampleClock& operator=(const SampleClock&) = delete;

  const std::string& name() const noexcept { return name_; }
  int rank() const noexcept { return rank_; }
  int ranks() const noexcept { return ranks_; }
  /// Whether the ranks outnumber the cores they may use together; valid after meet().
  bool oversubscribed() const noexcept { return oversubscribed_; }

  /// Called while a rank waits outside the timed region, before it yields: lets a library that makes progress
  /// only inside its calls (MPI) serve the ranks that are still in the operation.
  void while_waiting(std::function<void()> idle) { idle_ = std::move(idle); }
  /// A rank that waits longer than this for the others throws instead of hanging.
  void deadline_seconds(double seconds) noexcept { deadline_ns_ = static_cast<std::int64_t>(seconds * 1e9); }

  /// Waits until every rank has opened the page and unlinks it, so that no later crash leaves it
  /// behind.
  void meet() {
    CPU_ZERO(&mine().cores);
    if (sched_getaffinity(0, sizeof(cpu_set_t), &mine().cores) != 0)
      std::memset(&mine().cores, 0xff, sizeof(cpu_set_t));
    arrive();
    wait_for_all(&Slot::arrived, "start");
    unlink();
    // A launcher may bind each rank to one core, so the union of all ranks' cores counts.
    cpu_set_t together;
    CPU_ZERO(&together);
    for (int r = 0; r < ranks_; ++r) CPU_OR(&together, &together, &slot(r).cores);
    oversubscribed_ = CPU_COUNT(&together) < ranks_;
    finish(now_ns(), now_ns());
    wait_for_all(&Slot::done, "end");
  }

  /// Runs `operation` `batch` times back to back on every rank after a common start. Collective.
  template <class Operation>
  Sample time(Operation&& operation, int batch = 1) {
    const auto [released, began] = start();
    for (int i = 0; i < batch; ++i) operation();
    finish(began, now_ns());
    wait_for_all(&Slot::done, "end");
    std::int64_t last_began = released, last_ended = released;
    for (int r = 0; r < ranks_; ++r) {
      last_began = std::max(last_began, slot(r).began_ns.load(std::memory_order_relaxed));
      last_ended = std::max(last_ended, slot(r).ended_ns.load(std::memory_order_relaxed));
    }
    return {static_cast<double>(last_ended - released) / 1e3 / batch, static_cast<double>(last_began - released) / 1e3,
            released};
  }

 private:
  // Two cache lines apart, since adjacent lines are prefetched in pairs. Each slot has one writer: its
  // rank.
  struct alignas(128) Slot {
    std::atomic<std::uint64_t> arrived{0};  ///< release in arrive(), after `cores`; pairs with wait_for_all()
    std::atomic<std::uint64_t> done{0};     ///< release in finish(), after the times; pairs with wait_for_all()
    std::atomic<std::int64_t> began_ns{0};  ///< relaxed: published by `done`
    std::atomic<std::int64_t> ended_ns{0};  ///< relaxed: published by `done`
    cpu_set_t cores;
  };
  struct alignas(128) Release {
    /// Release in start() of rank 0; pairs with the acquire load of the others
    std::atomic<std::uint64_t> generation{0};
    std::atomic<std::int64_t> at_ns{0};  ///< relaxed: published by `generation`
  };
  struct Unmap {
    std::size_t bytes;
    void operator()(void* memory) const noexcept { munmap(memory, bytes); }
  };

  static std::size_t segment_bytes(int ranks) {
    return sizeof(Release) + sizeof(Slot) * static_cast<std::size_t>(ranks);
  }

  [[noreturn]] static void fail(const std::string& what, const std::string& name) {
    throw std::runtime_error("sample clock: cannot " + what + " " + name + ": " + std::strerror(errno));
  }

  static std::string create_segment(int ranks) {
    if (ranks < 1) throw std::invalid_argument("sample clock: needs at least one rank, got " + std::to_string(ranks));
    std::random_device random;
    std::string name = "/medley-clock-" + std::to_string(getpid()) + "-" + std::to_string(random());
    const int file = shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600);
    if (file < 0) fail("create", name);
    const bool sized = ftruncate(file, static_cast<off_t>(segment_bytes(ranks))) == 0;
    close(file);
    if (!sized) {
      shm_unlink(name.c_str());
      fail("size", name);
    }
    return name;
  }

  SampleClock(std::string name, int rank, int ranks)
      : name_(std::move(name)), rank_(rank), ranks_(ranks), segment_(nullptr, Unmap{segment_bytes(ranks)}) {
    const int file = shm_open(name_.c_str(), O_RDWR, 0600);
    if (file < 0) fail("open", name_);
    void* memory = mmap(nullptr, segment_bytes(ranks), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) fail("map", name_);
    segment_.reset(memory);
    linked_ = rank_ == 0;
  }

  // The file starts as zeros, which is the initial state of every atomic here.
  Release& release() const { return *static_cast<Release*>(segment_.get()); }
  Slot& slot(int rank) const {
    return reinterpret_cast<Slot*>(static_cast<std::byte*>(segment_.get()) + sizeof(Release))[rank];
  }
  Slot& mine() const { return slot(rank_); }

  void unlink() noexcept {
    if (std::exchange(linked_, false)) shm_unlink(name_.c_str());
  }

  void arrive() { mine().arrived.store(++generation_, std::memory_order_release); }

  struct Start {
    std::int64_t released_ns, began_ns;
  };

  /// Waits for everyone, then for the start time that rank 0 sets. It is slightly ahead, so that every
  /// running rank has seen it in time. Oversubscribed ranks start at once, since spinning would only take each
  /// other's time.
  Start start() {
    arrive();
    if (rank_ == 0) {
      wait_for_all(&Slot::arrived, "start");
      const std::int64_t ahead = oversubscribed_ ? 0 : 1000 + 100 * ranks_;
      release().at_ns.store(now_ns() + ahead, std::memory_order_relaxed);
      release().generation.store(generation_, std::memory_order_release);
    } else {
      wait([&] { return release().generation.load(std::memory_order_acquire) >= generation_; }, 0, "start");
    }
    const std::int64_t at = release().at_ns.load(std::memory_order_relaxed);
    std::int64_t began = now_ns();
    while (began < at) began = now_ns();
    return {at, began};
  }

  void finish(std::int64_t began, std::int64_t ended) {
    mine().began_ns.store(began, std::memory_order_relaxed);
    mine().ended_ns.store(ended, std::memory_order_relaxed);
    mine().done.store(generation_, std::memory_order_release);
  }

  /// A slot read here is not overwritten before this rank arrives at the next start, since no rank passes it
  /// earlier. Pairs with the release stores in arrive() and finish().
  void wait_for_all(std::atomic<std::uint64_t> Slot::*flag, const char* point) {
    for (int r = 0; r < ranks_; ++r) {
      wait([&] { return (slot(r).*flag).load(std::memory_order_acquire) >= generation_; }, r, point);
    }
  }

  template <class Ready>
  void wait(Ready&& ready, int whom, const char* point) {
    // About 50 µs. Not when cores are oversubscribed: the awaited rank may need the very core that would spin.
    const int spins = oversubscribed_ ? 1 : 2000;
    for (int i = 0; i < spins; ++i) {
      if (ready()) return;
      pause();
    }
    const std::int64_t give_up = now_ns() + deadline_ns_;
    while (!ready()) {
      if (idle_) idle_();
      sched_yield();
      if (now_ns() > give_up) {
        throw std::runtime_error("sample clock: rank " + std::to_string(rank_) + " waited in vain for rank " +
                                 std::to_string(whom) + " at the " + point + " of sample " +
                                 std::to_string(generation_));
      }
    }
  }

  std::string name_;
  int rank_;
  int ranks_;
  std::unique_ptr<void, Unmap> segment_;
  bool linked_ = false;
  bool oversubscribed_ = true;  // until meet() finds out: safe on any machine
  std::uint64_t generation_ = 0;
  std::int64_t deadline_ns_ = 120'000'000'000;
  std::function<void()> idle_;
};

}  // namespace medley::tune
