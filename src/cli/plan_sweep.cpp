// How `medley plan --sweep` shows its points.
#include <fmt/format.h>

#include <set>

#include "cli/plan.hpp"
#include "cli/table.hpp"

namespace medley::cli {
namespace {

std::vector<std::string> sweep_header(const cost::SweepResult& sweep, const std::set<std::string_view>& groups,
                                      bool timed) {
  std::vector<std::string> header;
  for (const cost::SweepAxis& axis : sweep.axes) header.push_back(axis.key);
  header.insert(header.end(), groups.begin(), groups.end());
  header.insert(header.end(), {"all on the wire", "messages", "small", "memory"});
  if (timed) header.insert(header.end(), {"fits", "step ms", "TFLOP/s/GPU"});
  return header;
}

std::vector<std::string> sweep_row(const cost::SweepPoint& p, const std::set<std::string_view>& groups) {
  std::vector<std::string> row = p.values;
  for (const std::string_view group : groups) {
    const auto total = p.volume.by_group.find(group);
    row.push_back(total == p.volume.by_group.end() ? "–" : size_text(total->second.wire_bytes));
  }
  row.insert(row.end(), {size_text(p.volume.all.wire_bytes), std::to_string(p.volume.all.count),
                         fmt::format("{:.1f} %", 100 * p.volume.small.of_count),
                         size_text(static_cast<double>(p.memory.total()))});
  if (p.time)
    row.insert(row.end(), {p.time->fits ? "yes" : "no", fmt::format("{:.2f}", p.time->cost.step_us * 1e-3),
                           fmt::format("{:.1f}", p.time->cost.tflops_per_gpu)});
  return row;
}

}  // namespace

void print_sweep(const cost::SweepResult& sweep) {
  std::set<std::string_view> groups;
  for (const cost::SweepPoint& p : sweep.points)
    for (const auto& [group, total] : p.volume.by_group) groups.insert(group);
  const auto header = sweep_header(sweep, groups, sweep.timed);
  Table table(header);
  for (const cost::SweepPoint& p : sweep.points) {
    if (p.refused.empty()) {
      table.add(sweep_row(p, groups));
      continue;
    }
    std::vector<std::string> row = p.values;
    row.resize(header.size() - 1, "–");
    row.push_back("refused: " + p.refused);
    table.add(row);
  }
  fmt::print("wire bytes of one rank and step, by group\n{}", table.str());
}

}  // namespace medley::cli
