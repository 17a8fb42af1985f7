// The ranks of one context on this host: their processes, whether they are alive, and the doorbell each sleeps on. One
// per context; every shm comm rings its doorbells.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <medley/backend.hpp>
#include <span>
#include <string>
#include <vector>

#include "backends/shm/segment.hpp"

namespace medley::shm {

struct alignas(64) Doorbell {
  std::atomic<std::uint32_t> rings;     ///< what the owner's threads sleep on (a futex)
  std::atomic<std::uint32_t> sleepers;  ///< threads of the owner that sleep or are about to
};

class HostPeers final : public EventCount {
 public:
  explicit HostPeers(const BackendParams& params);
  ~HostPeers() override;
  HostPeers(const HostPeers&) = delete;
  HostPeers& operator=(const HostPeers&) = delete;

  /// The index among the peers of a world rank, or -1 when it is on another host.
  int index(int world_rank) const { return index_[static_cast<std::size_t>(world_rank)]; }
  int process(int neighbour) const { return processes_[static_cast<std::size_t>(neighbour)]; }
  /// Whether the peer's process is gone.
  bool dead(int neighbour) const;
  /// Copies `bytes` out of a peer's memory, which is `rank` in the comm. Throws when it cannot, for instance when the
  /// peer died, or when its process id may have been reused. Called under the engine's lock.
  void read(void* to, int neighbour, std::uint64_t from, std::size_t bytes, int rank) const;
  /// Whether process_vm_readv works between all peers, as a probe at the start showed; MEDLEY_SHM_DIRECT=0 in the
  /// environment of any of them disables it without a probe, for tests and for hosts where it is slow.
  bool direct_reads() const { return direct_reads_; }
  /// Whether large data may still go through the segment; MEDLEY_SHM_DIRECT=1 in the environment of any rank forbids
  /// it.
  bool may_stream() const { return may_stream_; }
  int cores() const { return cores_; }

  /// Wakes those of `peers` that sleep. Call after the store they wait for, which must be a release store.
  ///
  /// The load is sequentially consistent, which costs nothing on x86 and on AArch64 makes it an LDAR: that one waits
  /// for the STLR of the flag before it, so a sleeper that this rank does not see has seen the flag. On x86 the load
  /// may pass the store; see prepare() for why no fence is needed. Pairs with the additions in prepare(): a thread that
  /// is counted here is seen in its doorbell.
  void wake(std::span<const int> host_peers) const {
    if (sleeping_->load(std::memory_order_seq_cst) != 0) ring(host_peers);
  }

  int spins() const override { return spins_; }
  int yields() const override { return yields_; }
  bool oversubscribed() const override { return oversubscribed_; }
  std::uint32_t prepare() override;
  void sleep(std::uint32_t ticket, std::chrono::nanoseconds at_most) override;
  void cancel() override;
  void wake_own() noexcept override;

 private:
  void ring(std::span<const int> host_peers) const;
  std::vector<int> index_;
  std::vector<int> processes_;
  std::vector<int> process_files_;            ///< pidfds
  mutable std::vector<Deadline> seen_alive_;  ///< when its pidfd last showed it alive
  int own_ = 0;
  int cores_ = 1;
  bool may_stream_ = true;
  bool direct_reads_ = false;
  int spins_ = 0;
  int yields_ = 0;
  bool oversubscribed_ = false;
  Segment segment_;
  std::atomic<std::uint32_t>* sleeping_;  ///< how many threads of all peers sleep, or are about to
  Doorbell* doorbells_;
};

}  // namespace medley::shm
