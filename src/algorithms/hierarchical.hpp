// A hierarchical backend, made of two: one inside each host, one between hosts, such as shm+mpi. It carries all_reduce, all_gather,
// reduce_scatter, broadcast and all_to_all in phases, in which each byte crosses the network once. All other operations are filled
// in over messages, which use the first backend inside a host and the second between hosts. A context creates one when
// its list of backends or its route table contains `shm+mpi`.
#pragma once

#include <medley/backend.hpp>
#include <medley/sdk/polled_event_count.hpp>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/capabilities.hpp"

namespace medley::algorithms {

/// A backend with its agreed capabilities on all ranks.
struct Half {
  Backend* backend = nullptr;
  core::Capabilities capabilities{};
};

/// Reductions round twice, once in each phase; the order of combining is fixed if it is in both backends.
class HierarchicalBackend final : public Backend {
 public:
  /// `hosts`: of each world rank; ranks with equal strings share memory.
  HierarchicalBackend(Half inside, Half between, std::vector<std::string> hosts);

  std::string_view name() const override { return name_; }
  std::string version() const override { return inside_.backend->version() + " + " + between_.backend->version(); }
  bool has_memory(Memory memory) const override { return memory == Memory::host; }
  bool native(Op op, DType dtype, ReduceOp reduce, Memory memory) const override;
  /// Needs several hosts with the same number of ranks each, more than one, in contiguous blocks, as launchers place them.
  std::string refuses(const std::vector<int>& world_ranks) const override;
  std::unique_ptr<Lane> connect(const CommParams& group) override;
  /// Neither half's doorbell signals the other's events.
  EventCount* event_count() override { return &event_count_; }
  bool fixed_order() const override { return inside_.capabilities.fixed_order() && between_.capabilities.fixed_order(); }

 private:
  int ranks_per_host(const std::vector<int>& world_ranks) const;
  std::unique_ptr<Lane> connect_part(const Half& half, const CommParams& whole, const std::string& part, int first, int step, int count) const;
  Half inside_, between_;
  std::vector<std::string> hosts_;
  std::string name_;
  PolledEventCount event_count_;
};

}  // namespace medley::algorithms
