#include "algorithms/hierarchical.hpp"

#include <fmt/format.h>

#include "algorithms/hierarchical_lane.hpp"
#include "base/host_blocks.hpp"
#include "bootstrap/rendezvous.hpp"

namespace medley::algorithms {

HierarchicalBackend::HierarchicalBackend(Half inside, Half between, std::vector<std::string> hosts,
                                         DevicePart on_device)
    : inside_(inside),
      between_(between),
      hosts_(std::move(hosts)),
      on_device_(std::move(on_device)),
      name_(fmt::format("{}+{}", inside.backend->name(), between.backend->name())),
      event_count_(policy_of_both(inside, between)) {}

bool HierarchicalBackend::native(Op op, DType, ReduceOp, Memory memory) const {
  if (on_device_.device) return memory == Memory::cuda || op == Op::barrier;
  if (memory != Memory::host) return false;
  return op == Op::all_reduce || op == Op::all_gather || op == Op::reduce_scatter || op == Op::broadcast ||
         op == Op::all_to_all || op == Op::send || op == Op::recv;
}

/// 0 unless the ranks form equal contiguous blocks, one for each host.
int HierarchicalBackend::ranks_per_host(const std::vector<int>& world_ranks) const {
  std::vector<std::string_view> host_of_each;
  for (const int rank : world_ranks) host_of_each.emplace_back(hosts_[static_cast<std::size_t>(rank)]);
  return core::ranks_per_block(host_of_each);
}

std::string HierarchicalBackend::refuses(const std::vector<int>& world_ranks) const {
  const int block = ranks_per_host(world_ranks);
  if (block == 0) return fmt::format("{} needs several hosts with equally many ranks each, in blocks", name_);
  for (std::size_t i = 0; i < world_ranks.size(); i += static_cast<std::size_t>(block)) {
    const std::vector<int> host(world_ranks.begin() + static_cast<std::ptrdiff_t>(i),
                                world_ranks.begin() + static_cast<std::ptrdiff_t>(i) + block);
    if (std::string why = inside_.backend->refuses(host); !why.empty()) return why;
  }
  return between_.backend->refuses(world_ranks);
}

std::unique_ptr<Lane> HierarchicalBackend::connect_part(const Half& half, const CommParams& whole, const Part& part,
                                                        Lane** on_host) const {
  CommParams params{.name = fmt::format("{}/{}/{}", whole.name, name_, part.name),
                    .rank = (whole.rank - part.first) / part.step,
                    .size = part.count,
                    .world_ranks = {},
                    .store = std::make_shared<PrefixStore>(whole.store, part.name + "/"),
                    .deadline = whole.deadline,
                    .progress = whole.progress,
                    .gather = whole.gather};
  for (int i = 0; i < part.count; ++i)
    params.world_ranks.push_back(whole.world_ranks[static_cast<std::size_t>(part.first + i * part.step)]);
  return connect_half(half, params, on_device_, on_host);
}

std::unique_ptr<Lane> HierarchicalBackend::connect(const CommParams& params) {
  const int block = ranks_per_host(params.world_ranks), hosts = params.size / block;
  const int host = params.rank / block, place = params.rank % block;
  HierarchicalLane::Lanes parts;
  parts.inside = connect_part(inside_, params, {fmt::format("host{}", host), host * block, 1, block});
  if (!on_device_.device)
    parts.leaving = connect_part(inside_, params, {fmt::format("leaving{}", host), host * block, 1, block});
  parts.between = connect_part(between_, params, {fmt::format("place{}", place), place, block, hosts}, &parts.on_host);
  parts.all = connect_part(between_, params, {"all", 0, 1, params.size}, &parts.on_host);
  parts.own_reductions = between_.capabilities.has(Trait::slow_reductions);
  parts.device = on_device_.device;
  return std::make_unique<HierarchicalLane>(std::move(parts), host, place, hosts, block);
}

}  // namespace medley::algorithms
