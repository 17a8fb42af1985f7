#include "plan/cost/entry_time.hpp"

#include <algorithm>

namespace medley::plan {
namespace {

constexpr std::array<std::string_view, group_count> groups{
    "tp", "cp", "ep", "dp", "edp", "pp", "embedding", "model", "tp_ep", "world", "other"};

Cause compute_cause(Phase phase) {
  switch (phase) {
    case Phase::recompute:
      return Cause::recompute;
    case Phase::optimizer:
      return Cause::optimizer;
    default:
      return Cause::compute;
  }
}

Cause comm_cause(std::string_view group) {
  if (group == "tp") return Cause::tp;
  if (group == "cp") return Cause::cp;
  if (group == "ep" || group == "tp_ep") return Cause::ep;
  if (group == "dp" || group == "edp") return Cause::dp;
  if (group == "pp" || group == "embedding") return Cause::pp;
  return Cause::sync;
}

bool across_stages(const Entry& entry, const Layout& layout) {
  return layout.pp > 1 && (entry.group == "embedding" || entry.group == "model" || entry.group == "world") &&
         entry.op != Op::send && entry.op != Op::recv;
}

/// An optimizer streams its state once; a layer's small kernels and the loss pass over their tensors several
/// times.
double passes(const Entry& entry, const CostConstants& constants) {
  if (entry.phase == Phase::optimizer) return 1;
  return entry.module == "loss" ? constants.loss_passes : constants.layer_passes;
}

double issue_us(Phase phase, const CostConstants& constants) {
  return phase == Phase::forward || phase == Phase::recompute ? constants.forward_issue_us
                                                              : constants.backward_issue_us;
}

EntryCost comm_cost(const Entry& entry, const Layout& layout, Count rank, const Machine& machine,
                    const LinkTime& links) {
  EntryCost cost{.cause = comm_cause(entry.group),
                 .link = group_index(entry.group),
                 .across_stages = across_stages(entry, layout)};
  const double bytes = static_cast<double>(entry.bytes);
  if (entry.op == Op::send || entry.op == Op::recv) {
    const bool same_host = rank / machine.gpus_per_host == entry.peer / machine.gpus_per_host;
    cost.us = links.point_to_point_us(bytes, same_host);
  } else {
    cost.us = links.collective_us(entry.op, bytes, group_shape(entry, layout, machine));
  }
  return cost;
}

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

std::vector<EntryCost> entry_costs(const Schedule& schedule, const Layout& layout, Count rank,
                                   const Machine& machine) {
  const CostConstants& constants = machine.constants;
  const KernelTime kernels(machine.gpu, constants);
  const LinkTime links(machine);
  std::vector<EntryCost> costs;
  costs.reserve(schedule.entries().size());
  for (const Entry& entry : schedule.entries()) {
    EntryCost cost{.cause = compute_cause(entry.phase)};
    switch (entry.kind) {
      case Kind::gemm:
        cost.us = kernels.gemm_us(entry.gemm, entry.dtype);
        break;
      case Kind::attention:
        cost.us = kernels.attention_us(entry.attention, entry.phase == Phase::backward);
        break;
      case Kind::memory:
        cost.us = kernels.memory_us(static_cast<double>(entry.bytes)) * passes(entry, constants);
        break;
      case Kind::comm:
        cost = comm_cost(entry, layout, rank, machine, links);
        break;
      case Kind::wait:
        break;
    }
    if (entry.kind != Kind::wait && entry.kind != Kind::comm) {
      cost.us += constants.kernel_us;
      cost.host_us = issue_us(entry.phase, constants);
    }
    costs.push_back(cost);
  }
  return costs;
}

}  // namespace medley::plan
