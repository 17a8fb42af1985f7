// A backend made of two that work at the same time, such as shm|ucx: all_reduce, broadcast and reduce of a large tensor
// are divided into two contiguous parts, one for each library. Everything else uses the first. A context creates one
// when its list of backends or its route table contains `shm|ucx`.
#pragma once

#include <medley/backend.hpp>
#include <medley/sdk/polled_event_count.hpp>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/half.hpp"

namespace medley::algorithms {

class SplitBackend final : public Backend {
 public:
  SplitBackend(Half first, Half second, DevicePart on_device);

  std::string_view name() const override { return name_; }
  std::string version() const override { return first_.backend->version() + " | " + second_.backend->version(); }
  bool has_memory(Memory memory) const override { return memory == (on_device_.device ? Memory::cuda : Memory::host); }
  /// What a half lacks is filled in on its own lane.
  bool native(Op op, DType, ReduceOp, Memory memory) const override {
    return has_memory(memory) || (on_device_.device && op == Op::barrier);
  }
  std::string refuses(const std::vector<int>& world_ranks) const override;
  std::unique_ptr<Lane> connect(const CommParams& params) override;
  /// Neither half's doorbell signals the other's events, and a device has none.
  EventCount* event_count() override { return on_device_.device ? nullptr : &event_count_; }
  /// On its own lane, each half fills in what must have a fixed order.
  bool fixed_order() const override { return true; }
  /// The shares of the first half.
  std::vector<std::string_view> algorithms(Op op) const override;

 private:
  Half first_, second_;
  DevicePart on_device_;
  std::string name_;
  PolledEventCount event_count_;
};

}  // namespace medley::algorithms
