// How `medley plan --sweep` shows its points.
#include <fmt/format.h>

#include <set>

#include "cli/plan.hpp"
#include "cli/table.hpp"

namespace medley::cli {
namespace {

// Wire bytes by group stand between what was swept and what came of it; the last column is a remark.
std::vector<std::string> sweep_header(const cost::SweepResult& sweep, const std::set<std::string_view>& groups) {
  std::vector<std::string> header;
  for (const cost::SweepAxis& axis : sweep.axes) header.push_back(axis.key);
  header.push_back("GPUs");
  header.insert(header.end(), groups.begin(), groups.end());
  header.insert(header.end(), {"all on the wire", "messages", "small", "memory"});
  if (sweep.timed) header.insert(header.end(), {"fits", "step ms", "tokens/s/GPU", "TFLOP/s/GPU"});
  if (sweep.trains) header.insert(header.end(), {"days", "GPU-hours"});
  header.push_back("");
  return header;
}

std::vector<std::string> sweep_row(const cost::SweepPoint& p, const std::set<std::string_view>& groups) {
  std::vector<std::string> row = p.values;
  row.push_back(std::to_string(p.world));
  for (const std::string_view group : groups) {
    const auto total = p.volume.by_group.find(group);
    row.push_back(total == p.volume.by_group.end() ? "–" : size_text(total->second.wire_bytes));
  }
  row.insert(row.end(), {size_text(p.volume.all.wire_bytes), std::to_string(p.volume.all.count),
                         fmt::format("{:.1f} %", 100 * p.volume.small.of_count),
                         size_text(static_cast<double>(p.memory.total()))});
  if (p.time)
    row.insert(row.end(), {p.time->fits ? "yes" : "no", fmt::format("{:.2f}", p.time->cost.step_us * 1e-3),
                           fmt::format("{:.0f}", p.time->cost.tokens_per_s_per_gpu),
                           fmt::format("{:.1f}", p.time->cost.tflops_per_gpu)});
  if (p.time && p.time->training) add_training(row, *p.time->training);
  return row;
}

bool same_gpus(const cost::SweepResult& sweep) {
  std::set<plan::Count> worlds;
  for (const cost::SweepPoint& p : sweep.points)
    if (p.refused.empty()) worlds.insert(p.world);
  return worlds.size() == 1;
}

}  // namespace

void print_sweep(const cost::SweepResult& sweep) {
  std::set<std::string_view> groups;
  for (const cost::SweepPoint& p : sweep.points)
    for (const auto& [group, total] : p.volume.by_group) groups.insert(group);
  const auto header = sweep_header(sweep, groups);
  Table table(header);
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    const cost::SweepPoint& p = sweep.points[i];
    std::vector<std::string> row = p.refused.empty() ? sweep_row(p, groups) : p.values;
    row.resize(header.size() - 1, "–");
    row.push_back(!p.refused.empty()   ? "refused: " + p.refused
                  : i != sweep.fastest ? ""
                  : same_gpus(sweep)   ? "fastest that fits"
                                       : "most tokens/s/GPU that fits");
    table.add(row);
  }
  fmt::print("wire bytes of one rank and step, by group; rows in the order of --sweep\n{}", table.str());
  if (sweep.timed) fmt::print("medley plan search finds the fastest of all layouts of a number of GPUs\n");
}

}  // namespace medley::cli
