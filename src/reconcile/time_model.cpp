#include "reconcile/time_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "algorithms/registry.hpp"
#include "base/v_collectives.hpp"

namespace medley::reconcile {
namespace {

replay::Action action_of(const trace::Event& event) {
  replay::Action out;
  out.op = core::equal_counts_form(event.op);
  out.dtype = event.dtype;
  out.bytes = event.bytes;
  return out;
}

}  // namespace

TimeModel::TimeModel(const trace::Trace& trace, std::optional<cost::Machine> machine, std::optional<route::Table> table,
                     std::string table_name)
    : trace_(trace), machine_(std::move(machine)), table_name_(std::move(table_name)) {
  place_ranks(trace);
  if (machine_) {
    on_links_ = replay::time_on_machine(*machine_, 1);
    at_full_bandwidth_ = replay::time_on_links(cost::LinkTime::at_full_bandwidth(*machine_), *machine_, 1);
  }
  if (!table) return;
  table_ = std::make_unique<route::Table>(*std::move(table));
  std::set<std::string> names;
  for (const route::Cell& cell : table_->cells())
    for (const route::Timing& timing : cell.routes) names.insert(timing.route.backend);
  backends_.assign(names.begin(), names.end());
}

/// Ranks of one host get consecutive places on the machine, as the cost model numbers them.
void TimeModel::place_ranks(const trace::Trace& trace) {
  std::map<std::string, int> hosts;
  std::map<int, int> filled;
  int most = 0;
  std::vector<int> host_of(static_cast<std::size_t>(std::max(trace.world, 0)), -1), local = host_of;
  for (const trace::RankTrace& rank : trace.ranks) {
    if (rank.context != 1) continue;
    if (rank.host.empty() || rank.rank >= trace.world) return;
    const int host = hosts.emplace(rank.host, static_cast<int>(hosts.size())).first->second;
    host_of[static_cast<std::size_t>(rank.rank)] = host;
    local[static_cast<std::size_t>(rank.rank)] = filled[host]++;
    most = std::max(most, filled[host]);
  }
  if (std::find(host_of.begin(), host_of.end(), -1) != host_of.end()) return;  // ranks without a trace
  host_of_ = host_of;
  if (!machine_) return;
  if (most > machine_->gpus_per_host) {
    remarks_.push_back(fmt::format("a host of the trace has {} ranks, one of {} has {} GPUs: ranks are placed as on {}",
                                   most, machine_->name, machine_->gpus_per_host, machine_->name));
    return;
  }
  for (std::size_t r = 0; r < host_of.size(); ++r) place_of_.push_back(host_of[r] * machine_->gpus_per_host + local[r]);
}

std::vector<int> TimeModel::placed(const std::vector<int>& who) const {
  std::vector<int> out;
  for (const int rank : who)
    out.push_back(static_cast<std::size_t>(rank) < place_of_.size() ? place_of_[static_cast<std::size_t>(rank)] : rank);
  std::sort(out.begin(), out.end());
  return out;
}

std::optional<double> TimeModel::by_table(const trace::Event& event, const std::vector<int>& who) {
  // A recorded backend with its own algorithm is the table's native row; any other route is the one that the table
  // would choose.
  std::string backend = trace_.names[event.backend];
  const std::string& algorithm = trace_.names[event.algorithm];
  const bool known = std::find(backends_.begin(), backends_.end(), backend) != backends_.end();
  if (!known || !(algorithm.empty() || algorithm == algorithms::native)) backend.clear();
  const auto [times, fresh] = by_backend_.try_emplace(std::pair(backend, event.on_device), *table_, backend, backends_,
                                                      event.on_device ? Memory::cuda : Memory::host);
  std::vector<int> hosts = host_of_;
  hosts.resize(
      std::max<std::size_t>(hosts.size(), static_cast<std::size_t>(*std::max_element(who.begin(), who.end())) + 1), 0);
  return replay::time_by_table(times->second, hosts, 1)(action_of(event), who);
}

std::optional<double> TimeModel::expected_us(const trace::Event& event, const std::vector<int>& who) {
  if (who.size() < 2 || event.unknown.has(trace::Field::bytes)) return std::nullopt;
  if (table_) {
    if (const auto us = by_table(event, who)) return us;
  }
  if (!machine_) return std::nullopt;
  return on_links_(action_of(event), placed(who));
}

std::optional<double> TimeModel::at_full_bandwidth_us(const trace::Event& event, const std::vector<int>& who) const {
  if (!machine_ || who.size() < 2 || event.unknown.has(trace::Field::bytes)) return std::nullopt;
  return at_full_bandwidth_(action_of(event), placed(who));
}

std::string TimeModel::source() const {
  if (machine_ && table_) return table_name_ + ", else " + machine_->name;
  return machine_ ? machine_->name : table_name_;
}

}  // namespace medley::reconcile
