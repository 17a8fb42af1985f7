#include "report/timeline.hpp"

#include <algorithm>
#include <map>

namespace medley::report {
namespace {

/// Times in ns on the trace's clock.
struct Bar {
  double begin = 0, end = 0;
  Op op{};
  std::uint32_t backend = 0;
  std::int64_t count = 1, bytes = 0;
  double exposed = 0;
  bool exposed_known = true;
  int lane = 0;
};

struct RankBars {
  int rank = 0, lanes = 1;
  double exposed = 0;
  std::vector<Bar> bars;
};

/// The operations of one step with both a start and an end, in order of start.
std::vector<Bar> bars_of(const trace::Trace& t, const trace::RankTrace& rank, const trace::Step& step) {
  std::vector<Bar> bars;
  trace::Event event;
  const auto shifted = [&](double time) { return time + rank.clock.offset + rank.clock.drift * time; };
  for (std::size_t i = step.begin; i < step.end; ++i) {
    if (!rank.events->read(i, event) || t.names[event.scope] == trace::step_scope) continue;
    const double begin = event.on_device ? event.started : event.issued;
    if (begin < 0 || event.completed < begin) continue;
    bars.push_back({shifted(begin), shifted(event.completed), event.op, event.backend, event.count,
                    event.bytes * event.count, event.exposed, event.exposed_known, 0});
  }
  std::stable_sort(bars.begin(), bars.end(), [](const Bar& a, const Bar& b) { return a.begin < b.begin; });
  return bars;
}

/// Merges a bar into the last one of its operation and backend when they are closer than `gap`, up to a few gaps:
/// longer bars would hide when the program waited.
std::vector<Bar> merged(const std::vector<Bar>& bars, double gap) {
  std::vector<Bar> out;
  std::map<std::pair<Op, std::uint32_t>, std::size_t> last;
  for (const Bar& bar : bars) {
    const auto [place, fresh] = last.emplace(std::pair(bar.op, bar.backend), out.size());
    if (!fresh && bar.begin - out[place->second].end <= gap && bar.end - out[place->second].begin <= 4 * gap) {
      Bar& joined = out[place->second];
      joined.end = std::max(joined.end, bar.end);
      joined.count += bar.count;
      joined.bytes += bar.bytes;
      joined.exposed += bar.exposed;
      continue;
    }
    place->second = out.size();
    out.push_back(bar);
  }
  return out;
}

/// Each bar takes the first lane that is free when it begins. Returns how many lanes there are.
int assign_lanes(std::vector<Bar>& bars, int most) {
  std::vector<double> busy_until;
  for (Bar& bar : bars) {
    const auto open = std::find_if(busy_until.begin(), busy_until.end(), [&](double end) { return end <= bar.begin; });
    if (open == busy_until.end() && static_cast<int>(busy_until.size()) >= most) {
      bar.lane = most - 1;
      continue;
    }
    bar.lane = static_cast<int>(open - busy_until.begin());
    if (open == busy_until.end()) busy_until.push_back(bar.end);
    else *open = bar.end;
  }
  return std::max<int>(1, static_cast<int>(busy_until.size()));
}

/// Numbers names in order of first use: each name appears in the page once.
class Names {
 public:
  std::size_t of(std::string_view name) {
    const auto [place, fresh] = numbers_.emplace(name, list.size());
    if (fresh) list.push_back(name);
    return place->second;
  }
  Json list = Json::array();

 private:
  std::map<std::string, std::size_t, std::less<>> numbers_;
};

}  // namespace

Json timeline_json(const trace::Trace& t, std::size_t step, const TimelineLimits& limits) {
  if (!t.timed) return nullptr;
  std::vector<RankBars> ranks;
  std::size_t left_out = 0;
  double first = -1, last = 0;
  bool waits_known = t.waits_known;
  for (const trace::RankTrace& rank : t.ranks) {
    if (ranks.size() == limits.ranks) {
      ++left_out;
      continue;
    }
    const trace::Steps steps = trace::find_steps(t, rank);
    if (step >= steps.steps.size()) continue;
    RankBars drawn{rank.rank, 1, 0, bars_of(t, rank, steps.steps[step])};
    if (drawn.bars.empty()) continue;
    for (const Bar& bar : drawn.bars) {
      first = first < 0 ? bar.begin : std::min(first, bar.begin);
      last = std::max(last, bar.end);
      drawn.exposed += bar.exposed;
      waits_known = waits_known && bar.exposed_known;
    }
    ranks.push_back(std::move(drawn));
  }
  if (ranks.empty()) return nullptr;
  bool any_merged = false;
  Names names;
  Json out = Json::array();
  const auto us = [](double ns) {
    return static_cast<double>(static_cast<std::int64_t>(ns)) / 1e3;
  };  // whole ns: short numbers
  for (RankBars& rank : ranks) {
    if (rank.bars.size() > limits.bars) {
      rank.bars = merged(rank.bars, (last - first) / static_cast<double>(limits.pixels));
      any_merged = true;
    }
    rank.lanes = assign_lanes(rank.bars, limits.lanes);
    Json bars = Json::array();
    for (const Bar& bar : rank.bars)
      bars.push_back({us(bar.begin - first), us(bar.end - first), bar.lane, names.of(name(bar.op)),
                      names.of(t.names[bar.backend]), bar.count, bar.bytes, us(bar.exposed)});
    out.push_back(
        {{"rank", rank.rank}, {"lanes", rank.lanes}, {"exposed_us", us(rank.exposed)}, {"bars", std::move(bars)}});
  }
  return {{"step_us", us(last - first)}, {"merged", any_merged},    {"waits_known", waits_known},
          {"names", names.list},         {"ranks", std::move(out)}, {"ranks_left_out", left_out}};
}

}  // namespace medley::report
