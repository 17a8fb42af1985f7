#include "reconcile/time_cells.hpp"

#include <algorithm>

namespace medley::reconcile {
namespace {

// Groups and neighbouring layers whose medians are within this factor are one row: what differs by more has a cause of
// its own.
constexpr double alike_factor = 2;

std::optional<double> median_of(std::vector<float> values) {
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return static_cast<double>(*middle);
}

bool same_speed(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return std::max(*a, *b) <= alike_factor * std::min(*a, *b) || std::max(*a, *b) <= 1;
}

struct LayerRange {
  std::int64_t first = -1, last = -1;
  TimeCell cell;
};

/// Neighbouring layers of one speed.
std::vector<LayerRange> ranges_of(const std::map<std::int64_t, TimeCell>& layers) {
  std::vector<LayerRange> out;
  for (const auto& [layer, cell] : layers) {
    const bool joins = !out.empty() && out.back().first >= 0 &&
                       same_speed(median_of(out.back().cell.observed_us), median_of(cell.observed_us));
    if (!joins) out.push_back({layer, layer, {}});
    out.back().last = layer;
    out.back().cell.add(cell);
  }
  return out;
}

TimeRow row_of(const TimeCells::Key& key, const LayerRange& range, const Catalog& catalog, double rank_steps,
               double steps_of_members) {
  const TimeCell& cell = range.cell;
  TimeRow row{key.op, key.group, key.group_size};
  if (key.bytes >= 0) row.bytes = key.bytes;
  row.phase = phase_name(key.phase);
  row.first_layer = range.first;
  row.last_layer = range.last;
  row.count = static_cast<double>(cell.count) / std::max(1.0, steps_of_members);
  if (cell.predicted > 0) row.expected_us = cell.expected_us / static_cast<double>(cell.predicted);
  row.observed_us = median_of(cell.observed_us);
  if (!cell.observed_us.empty()) row.slowest_us = *std::max_element(cell.observed_us.begin(), cell.observed_us.end());
  row.with_waiting = cell.with_waiting > 0;
  if (cell.linked > 0 && row.observed_us && *row.observed_us > 0)
    row.of_link = cell.bandwidth_us / static_cast<double>(cell.linked) / *row.observed_us;
  if (!cell.waits_known || cell.observed_us.empty()) return row;
  row.waits.add(cell.waits, 1 / rank_steps);
  row.exposed_us = row.waits.total();
  for (const auto& [rank, us] : cell.late) row.late[rank] = us / rank_steps;
  const auto most = std::max_element(cell.behind.begin(), cell.behind.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != cell.behind.end()) row.behind = catalog.text(most->first);
  return row;
}

/// The order in which a reader wants them: by exposed time, else by the time beyond what was expected.
double weight_of(const TimeRow& row) {
  if (row.exposed_us) return *row.exposed_us;
  return row.observed_us ? row.count * std::max(0.0, *row.observed_us - row.expected_us.value_or(0)) : 0;
}

}  // namespace

void TimeCell::add(const TimeCell& other) {
  observed_us.insert(observed_us.end(), other.observed_us.begin(), other.observed_us.end());
  expected_us += other.expected_us;
  predicted += other.predicted;
  bandwidth_us += other.bandwidth_us;
  linked += other.linked;
  count += other.count;
  with_waiting += other.with_waiting;
  waits_known = waits_known && other.waits_known;
  waits.add(other.waits);
  for (const auto& [rank, us] : other.late) late[rank] += us;
  for (const auto& [kind, us] : other.behind) behind[kind] += us;
}

std::vector<TimeRow> TimeCells::rows(const Catalog& catalog, double rank_steps,
                                     const std::map<std::uint32_t, double>& by_group) const {
  std::vector<TimeRow> out;
  for (const auto& [key, groups] : cells_) {
    std::vector<std::pair<std::optional<double>, std::uint32_t>> by_speed;
    for (const auto& [group, layers] : groups) {
      TimeCell all;
      for (const auto& [layer, cell] : layers) all.add(cell);
      by_speed.emplace_back(median_of(std::move(all.observed_us)), group);
    }
    std::sort(by_speed.begin(), by_speed.end());
    for (std::size_t begin = 0, end = 0; begin < by_speed.size(); begin = end) {
      Layers together;
      std::vector<std::vector<int>> members;
      double steps = 0;
      for (; end < by_speed.size() && same_speed(by_speed[begin].first, by_speed[end].first); ++end) {
        const std::uint32_t group = by_speed[end].second;
        for (const auto& [layer, cell] : groups.at(group)) together[layer].add(cell);
        members.push_back(catalog.group_of_number(group).ranks);
        const auto found = by_group.find(group);
        steps += found == by_group.end() ? 0 : found->second;
      }
      std::sort(members.begin(), members.end());
      for (const LayerRange& range : ranges_of(together)) {
        out.push_back(row_of(key, range, catalog, rank_steps, steps));
        if (members.size() < by_speed.size()) out.back().only = members;
      }
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const TimeRow& a, const TimeRow& b) { return weight_of(a) > weight_of(b); });
  return out;
}

}  // namespace medley::reconcile
