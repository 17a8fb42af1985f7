// One collective of a hierarchical backend on CUDA memory, such as nccl+mpi. Phases that are stream-ordered (nccl)
// follow each other in streams; a phase that the host stages follows when the host has seen the earlier ones complete,
// and holds up the next one. Created by the lane. Nothing here waits for the device.
#pragma once

#include <medley/sdk/device.hpp>

#include "algorithms/phased_transfer.hpp"

namespace medley::algorithms {

class DevicePhases final : public PhasedTransfer {
 public:
  /// `stream`: the lane's own, in which the dependencies of its collectives meet.
  DevicePhases(HierarchicalLane& lane, const Call& call, std::shared_ptr<Device> device, void* stream)
      : PhasedTransfer(lane, call), device_(std::move(device)), stream_(stream), task_(run()) {}

  ~DevicePhases() override;
  Poll poll() override;
  /// Whether no phase is left to launch in a stream; the host may still have to stage the last one.
  bool launched() override;
  bool order(void* stream) override;

 private:
  Task run();
  Task all_reduce();
  Task reduce_scatter();
  Task all_gather();
  Task broadcast();
  Task all_to_all();
  Task over_all();

  /// Device memory until the transfer is destroyed. Called before prepare().
  std::byte* scratch(std::int64_t count);
  /// Collects the call's dependencies, which are valid only while it starts, in one event.
  void prepare();
  void start_after(Lane& lane);
  /// Suspends until the next phase may start: `next` is its lane, null after the last one.
  auto over(Lane& lane, Lane* next) {
    start_after(lane);
    last_ = !next;
    const bool in_streams = next && lane.in_streams() && next->in_streams();
    return until([this, in_streams] {
      if (running_.empty()) return true;
      at_->progress();
      return running_.poll(moved_) || (in_streams && running_.launched());
    });
  }
  auto inside(Lane* next) { return over(*lanes().inside, next); }
  auto between(Lane* next) {
    name_own_reduction();
    return over(*lanes().between, next);
  }
  /// One tensor for each host, as one call of the lane inside the host.
  void list_by_host(Op op, const std::byte* from, std::int64_t in_parts, std::byte* to, std::int64_t out_parts,
                    std::int64_t part);
  void reduce_slices(std::int64_t count);
  void gather_slices_of(std::byte* whole, std::int64_t count);

  std::shared_ptr<Device> device_;
  void* stream_;
  std::vector<void*> scratch_;
  void* ready_ = nullptr;           ///< the event behind all dependencies and behind the scratch memory
  Dependencies dependencies_;       ///< of the phases
  std::vector<Transfer*> earlier_;  ///< phases that the next one follows in its stream
  std::vector<FusedTensor> tensors_;
  TensorList list_;
  bool last_ = false;     ///< the last phase has started
  bool chained_ = false;  ///< the lane's stream waits for the phases
  Task task_;
};

}  // namespace medley::algorithms
