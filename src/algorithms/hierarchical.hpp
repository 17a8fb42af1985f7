// A hierarchical backend, made of two: one inside each host, one between hosts, such as shm+mpi on host memory or
// nccl+mpi on CUDA memory. It carries all_reduce, all_gather, reduce_scatter, broadcast and all_to_all in phases, in
// which each byte crosses the network once. On host memory all other operations are filled in over messages, which use
// the first backend inside a host and the second between hosts; on CUDA memory they use the second. A context creates
// one when its list of backends or its route table contains `shm+mpi`.
#pragma once

#include <medley/backend.hpp>
#include <medley/sdk/polled_event_count.hpp>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/half.hpp"

namespace medley::algorithms {

/// Reductions round twice, once in each phase; the order of combining is fixed if it is in both backends.
class HierarchicalBackend final : public Backend {
 public:
  /// `hosts`: of each world rank; ranks with equal strings share memory.
  HierarchicalBackend(Half inside, Half between, std::vector<std::string> hosts, DevicePart on_device = {});

  std::string_view name() const override { return name_; }
  std::string version() const override { return inside_.backend->version() + " + " + between_.backend->version(); }
  bool has_memory(Memory memory) const override { return memory == memory_of_pair(); }
  bool native(Op op, DType dtype, ReduceOp reduce, Memory memory) const override;
  /// Needs several hosts with the same number of ranks each, more than one, in contiguous blocks, as launchers place
  /// them.
  std::string refuses(const std::vector<int>& world_ranks) const override;
  std::unique_ptr<Lane> connect(const CommParams& params) override;
  /// Neither half's doorbell signals the other's events, and a device has none.
  EventCount* event_count() override { return on_device_.device ? nullptr : &event_count_; }
  bool has(Trait trait) const override { return trait == Trait::connects_lazily && between_.capabilities.has(trait); }
  /// Staged reductions are filled in where the library's own have no fixed order.
  bool fixed_order() const override {
    return inside_.capabilities.fixed_order() && (on_device_.stages(between_) || between_.capabilities.fixed_order());
  }

 private:
  /// Some ranks of a comm: `count` from `first` on, `step` apart.
  struct Part {
    std::string name;
    int first, step, count;
  };
  Memory memory_of_pair() const { return on_device_.device ? Memory::cuda : Memory::host; }
  int ranks_per_host(const std::vector<int>& world_ranks) const;
  std::unique_ptr<Lane> connect_part(const Half& half, const CommParams& whole, const Part& part,
                                     Lane** on_host = nullptr) const;
  Half inside_, between_;
  std::vector<std::string> hosts_;
  DevicePart on_device_;
  std::string name_;
  PolledEventCount event_count_;
};

}  // namespace medley::algorithms
