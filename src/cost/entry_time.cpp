#include "cost/entry_time.hpp"

#include <algorithm>
#include <map>

#include "plan/groups.hpp"

namespace medley::cost {
namespace {

constexpr std::array<std::string_view, group_count> groups{
    "tp", "etp", "cp", "ep", "dp", "edp", "fsdp", "hsdp", "pp", "embedding", "model", "tp_ep", "world", "other"};

Cause compute_cause(Phase phase) {
  switch (phase) {
    case Phase::recompute: return Cause::recompute;
    case Phase::optimizer: return Cause::optimizer;
    default: return Cause::compute;
  }
}

/// Host time of the checks that TORCH_DISTRIBUTED_DEBUG=DETAIL runs before a collective. Messages have none;
/// shapes are not compared for the coalesced all_reduces of DDP's buckets.
double check_us(const Entry& entry, const CostConstants& constants) {
  if (entry.op == Op::send || entry.op == Op::recv) return 0;
  const bool coalesced = entry.group == "dp" && entry.phase == Phase::backward;
  return constants.debug_check_us * (coalesced ? 0.5 : 1) * static_cast<double>(entry.group_size);
}

Cause comm_cause(std::string_view group) {
  if (group == "tp" || group == "etp") return Cause::tp;
  if (group == "cp") return Cause::cp;
  if (group == "ep" || group == "tp_ep") return Cause::ep;
  if (group == "dp" || group == "edp" || group == "fsdp" || group == "hsdp") return Cause::dp;
  if (group == "pp" || group == "embedding") return Cause::pp;
  return Cause::sync;
}

bool across_stages(const Entry& entry, const Layout& layout) {
  return layout.pp > 1 && entry.op != Op::send && entry.op != Op::recv &&
         (entry.group == "pp" || entry.group == "embedding" || entry.group == "model" || entry.group == "world");
}

/// Megatron's graphs of attention, router and preprocessing replay these kernels.
bool captured(const Entry& entry) {
  return entry.module.starts_with("attention") || entry.module.starts_with("norm") ||
         entry.module.starts_with("residual") || entry.module == "mlp.router";
}

/// Times of communication as seen from one rank; caches the placement of its groups on hosts.
class CommCosts {
 public:
  CommCosts(const Layout& layout, Count rank, const Machine& machine)
      : layout_(layout), rank_(rank), machine_(machine), links_(machine) {}

  EntryCost operator()(const Entry& entry) {
    EntryCost cost{.cause = comm_cause(entry.group),
                   .link = group_index(entry.group),
                   .across_stages = across_stages(entry, layout_)};
    const double bytes = static_cast<double>(entry.bytes);
    if (entry.op == Op::send || entry.op == Op::recv) {
      const Count per_host = machine_.gpus_per_host;
      cost.us = links_.point_to_point_us(bytes, rank_ / per_host == entry.peer / per_host);
    } else {
      cost.us = links_.collective_us(entry.op, bytes, shape(entry));
    }
    return cost;
  }

 private:
  const GroupShape& shape(const Entry& entry) {
    const auto [place, fresh] = shapes_.try_emplace(entry.group);
    if (fresh) place->second = group_shape(group_ranks(layout_, rank_, entry.group), machine_);
    return place->second;
  }

  const Layout& layout_;
  Count rank_;
  const Machine& machine_;
  LinkTime links_;
  std::map<std::string_view, GroupShape> shapes_;
};

}  // namespace

std::string_view name(Cause cause) noexcept {
  constexpr std::array<std::string_view, cause_count> names{
      "compute", "recompute", "optimizer", "launch", "tp", "cp", "ep", "dp", "pp", "sync", "bubble", "other"};
  return names[static_cast<std::size_t>(cause)];
}

std::uint8_t group_index(std::string_view group) noexcept {
  const auto found = std::ranges::find(groups, group);
  return static_cast<std::uint8_t>(found == groups.end() ? group_count - 1 : found - groups.begin());
}

std::vector<EntryCost> entry_costs(const Schedule& schedule, const Layout& layout, Framework framework, Count rank,
                                   const Machine& machine, KernelTime& kernels) {
  const CostConstants& constants = machine.constants;
  const double issue_us = constants.host_us(framework, layout.flags);
  const double gap_us = constants.idle_us(framework, layout.flags);
  // The playbook's pipelines over several hosts ran with the checks, its other layouts without.
  const bool checked = layout.flags.distributed_debug.value_or(framework == Framework::nanotron && layout.pp > 1 &&
                                                               layout.world() > machine.gpus_per_host);
  CommCosts comm(layout, rank, machine);
  std::vector<EntryCost> costs;
  costs.reserve(schedule.entries().size());
  for (const Entry& entry : schedule.entries()) {
    EntryCost cost{.cause = compute_cause(entry.phase)};
    double host_us = issue_us * kernels_of(entry);
    if (entry.kind == Kind::comm) {
      cost = comm(entry);
      cost.tail_us = cost.us * entry.tail;
      host_us = issue_us * constants.comm_kernels;
      if (checked) host_us += check_us(entry, constants);
    } else if (entry.kind != Kind::wait) {
      cost.us = kernels.us(entry) * (entry.module == "loss" ? constants.loss_passes : 1) + gap_us * kernels_of(entry);
      if (entry.loop) host_us = std::min(issue_us, constants.loop_us) * kernels_of(entry);
    }
    if (layout.flags.partial_graphs && captured(entry)) host_us = 0;
    cost.host_us = host_us;
    costs.push_back(cost);
  }
  return costs;
}

}  // namespace medley::cost
