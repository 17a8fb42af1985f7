#include "algorithms/split.hpp"

#include <fmt/format.h>

#include "algorithms/split_lane.hpp"
#include "algorithms/split_share.hpp"
#include "bootstrap/rendezvous.hpp"

namespace medley::algorithms {

SplitBackend::SplitBackend(Half first, Half second, DevicePart on_device)
    : first_(first),
      second_(second),
      on_device_(std::move(on_device)),
      name_(fmt::format("{}|{}", first.backend->name(), second.backend->name())),
      event_count_(policy_of_both(first, second)) {}

std::string SplitBackend::refuses(const std::vector<int>& world_ranks) const {
  std::string why = first_.backend->refuses(world_ranks);
  return why.empty() ? second_.backend->refuses(world_ranks) : why;
}

std::vector<std::string_view> SplitBackend::algorithms(Op op) const {
  return divisible(op) ? share_names() : std::vector<std::string_view>{};
}

std::unique_ptr<Lane> SplitBackend::connect(const CommParams& params) {
  const auto own = [&](std::string_view part) {
    CommParams of_part = params;
    of_part.name = fmt::format("{}/{}/{}", params.name, name_, part);
    of_part.store = std::make_shared<PrefixStore>(params.store, fmt::format("{}/", part));
    return of_part;
  };
  SplitLane::Lanes lanes;
  Lane *below_first = nullptr, *below_second = nullptr;
  lanes.first = connect_half(first_, own("first"), on_device_, &below_first);
  lanes.second = connect_half(second_, own("second"), on_device_, &below_second);
  lanes.on_host = first_.capabilities.has_memory(Memory::host) ? below_first : below_second;
  lanes.own_reductions = {first_.capabilities.has(Trait::slow_reductions),
                          second_.capabilities.has(Trait::slow_reductions)};
  lanes.on_device = on_device_.device != nullptr;
  return std::make_unique<SplitLane>(std::move(lanes), params.size);
}

}  // namespace medley::algorithms
