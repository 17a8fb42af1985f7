// The lane of a hierarchical backend: private lanes inside the host, between hosts and among all ranks, and the phases
// that run on them. On host memory several collectives are under way, as in a pipeline: while one is between hosts, the
// next is inside the host. Each private lane gets their phases in issue order (PhaseOrder). On CUDA memory it runs one
// collective at a time.
#pragma once

#include <deque>
#include <medley/backend.hpp>
#include <medley/sdk/device.hpp>
#include <memory>
#include <vector>

#include "algorithms/orphans.hpp"
#include "algorithms/phase_order.hpp"

namespace medley::algorithms {

class PhasedTransfer;

class HierarchicalLane final : public Lane {
 public:
  struct Lanes {
    std::unique_ptr<Lane> inside;  ///< the ranks of this host; on host memory for phases before those between hosts
    /// On host memory, the same ranks for phases behind those between hosts; else null
    std::unique_ptr<Lane> leaving;
    std::unique_ptr<Lane> between;  ///< the ranks with this local index on every host
    std::unique_ptr<Lane> all;      ///< for messages to other hosts, and all user messages
    /// Whether reductions between hosts use Medley's algorithms although the library has its own.
    bool own_reductions = false;
    /// On CUDA memory: the device, set before the first operation; null on host memory.
    const std::shared_ptr<Device>* device = nullptr;
    Lane* on_host = nullptr;  ///< on CUDA memory: where a barrier without a stream runs (part of `all`)
  };
  HierarchicalLane(Lanes parts, int host, int place, int hosts, int places);

  Transfer* start(const Call& call) override;
  void progress() override;
  bool undelivered() const override;
  bool concurrent_collectives() const override { return !parts_.device; }
  bool takes_lists() const override { return parts_.device != nullptr; }
  /// Where both halves are stream-ordered, all phases launch when the collective starts.
  bool in_streams() const override { return parts_.inside->in_streams() && parts_.between->in_streams(); }
  void check() override;
  void abort(const Error& why) noexcept override;
  bool poll_abort() noexcept override;
  bool poll_close() noexcept override;

 private:
  friend class PhasedTransfer;
  class LocalMessage;
  /// An error of one of the lanes, with its ranks as ranks of the whole comm.
  Error in_whole_ranks(const Lane* part, const Error& error) const;
  template <class Called>
  auto in_whole_ranks(const Lane* part, Called&& called) const -> decltype(called()) {
    try {
      return called();
    } catch (const Error& error) {
      throw in_whole_ranks(part, error);
    }
  }
  /// The ranks that the earliest collective under way waits for.
  std::vector<int> awaited_now() const;
  Transfer* start_message(const Call& call);
  Transfer* start_in_segments(const Call& call, std::int64_t segments);
  Transfer* start_on_device(const Call& call);
  bool is_inside(const Lane* part) const {
    return part && (part == parts_.inside.get() || part == parts_.leaving.get());
  }
  /// Converts a rank of one of the lanes to a rank of the whole comm.
  int whole_rank(const Lane* part, int rank) const {
    return is_inside(part) ? host_ * places_ + rank : part == parts_.between.get() ? rank * places_ + place_ : rank;
  }
  /// In the errors of a private lane, and back: a rank of the comm that this lane does not have, such as the one that
  /// called abort.
  static int elsewhere(int rank) { return -1 - rank; }
  Lanes parts_;
  std::vector<Lane*> lanes_;  ///< all that there are
  int host_, place_, hosts_, places_;
  PhaseOrder order_;
  void* stream_ = nullptr;                    ///< on CUDA memory: where the dependencies of a collective meet
  std::deque<const PhasedTransfer*> issued_;  ///< on host memory, collectives that have not ended, in order of issue
  Orphans orphans_;
};

}  // namespace medley::algorithms
