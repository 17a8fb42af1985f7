// The lane of a hierarchical backend: private lanes inside the host, between hosts and among all ranks, and the phases that run
// on them. It runs one collective at a time, so that all ranks start the phases of all collectives in the same order.
#pragma once

#include <array>
#include <medley/backend.hpp>
#include <memory>
#include <vector>

namespace medley::algorithms {

class HierarchicalTransfer;

class HierarchicalLane final : public Lane {
 public:
  struct Lanes {
    std::unique_ptr<Lane> inside;    ///< the ranks of this host
    std::unique_ptr<Lane> between;   ///< the ranks with this local index on every host
    std::unique_ptr<Lane> all;       ///< for messages to other hosts, and all user messages
    /// Whether reductions between hosts use Medley's algorithms although the library has its own.
    bool own_reductions = false;
  };
  HierarchicalLane(Lanes parts, int host, int place, int hosts, int places)
      : parts_(std::move(parts)), host_(host), place_(place), hosts_(hosts), places_(places) {}
  ~HierarchicalLane() override;

  Transfer* start(const Call& call) override;
  void progress() override;
  bool undelivered() const override;
  bool concurrent_collectives() const override { return false; }
  void check() override;
  void abort(const Error& why) noexcept override;
  bool poll_abort() noexcept override;
  bool poll_close() noexcept override;

 private:
  friend class HierarchicalTransfer;
  void abandon_orphans() noexcept;
  Transfer* start_message(const Call& call);
  std::array<Lane*, 3> lanes() const { return {parts_.inside.get(), parts_.between.get(), parts_.all.get()}; }
  /// Converts a rank of one of the lanes to a rank of the whole comm.
  int whole_rank(const Lane* part, int rank) const {
    return part == parts_.inside.get() ? host_ * places_ + rank : part == parts_.between.get() ? rank * places_ + place_ : rank;
  }
  Lanes parts_;
  int host_, place_, hosts_, places_;
  std::vector<HierarchicalTransfer*> orphans_;   ///< failed transfers, until the lane is aborted
  bool closing_ = false;
};

}  // namespace medley::algorithms
