#include "trace/skew.hpp"

#include <algorithm>
#include <unordered_map>

namespace medley::trace {
namespace {

constexpr std::size_t most_kept = std::size_t{1} << 20;  // in a longer trace, every n-th collective is used

struct Arrival {
  double first = 0, second_last = 0, last = 0;
  int last_rank = 0;
  int ranks = 0;
  Op op{};
};

void arrive(Arrival& at, double time, int rank) {
  if (at.ranks++ == 0) {
    at.first = at.last = at.second_last = time;
    at.last_rank = rank;
  } else if (time >= at.last) {
    at.second_last = at.last;
    at.last = time;
    at.last_rank = rank;
  } else {
    at.first = std::min(at.first, time);
    at.second_last = at.ranks == 2 ? time : std::max(at.second_last, time);
  }
}

struct Gathered {
  std::vector<double> apart;
  std::map<int, std::pair<std::int64_t, double>> last;  ///< by rank: how often it was last, and its total lateness
};

Skew skew_of(std::uint32_t group, Op op, Gathered& found) {
  Skew out{group, op, static_cast<std::int64_t>(found.apart.size())};
  std::sort(found.apart.begin(), found.apart.end());
  out.median_us = found.apart[found.apart.size() / 2] / 1e3;
  out.p99_us = found.apart[(found.apart.size() * 99 + 99) / 100 - 1] / 1e3;
  out.max_us = found.apart.back() / 1e3;
  std::int64_t most = 0;
  for (const auto& [rank, times] : found.last) {
    if (times.first <= most) continue;
    most = times.first;
    out.last_rank = rank;
    out.late_us = times.second / 1e3;
  }
  out.last_share = static_cast<double>(most) / static_cast<double>(out.collectives);
  return out;
}

}  // namespace

std::vector<Skew> find_skew(const Trace& trace) {
  if (trace.ranks.size() < 2 || !trace.timed) return {};
  std::size_t longest = 0;
  for (const RankTrace& rank : trace.ranks) longest = std::max(longest, rank.events->size());
  const std::uint64_t stride = longest / most_kept + 1;
  std::unordered_map<std::uint64_t, Arrival> arrivals;
  for (const RankTrace& rank : trace.ranks) {
    rank.for_each([&](const Event& event) {
      if (!event.matched || event.issued < 0 || event.sequence % stride != 0) return;
      Arrival& at = arrivals[(std::uint64_t{event.group} << 40) ^ event.sequence];
      if (at.ranks == 0) at.op = event.op;
      if (at.op == event.op) arrive(at, event.issued, rank.rank);
    });
  }
  std::map<std::pair<std::uint32_t, Op>, Gathered> kinds;
  for (const auto& [key, at] : arrivals) {
    if (at.ranks < 2) continue;
    Gathered& kind = kinds[{static_cast<std::uint32_t>(key >> 40), at.op}];
    kind.apart.push_back(at.last - at.first);
    auto& [times, late] = kind.last[at.last_rank];
    ++times;
    late += at.last - at.second_last;
  }
  std::vector<Skew> out;
  for (auto& [kind, found] : kinds) out.push_back(skew_of(kind.first, kind.second, found));
  std::stable_sort(out.begin(), out.end(), [](const Skew& a, const Skew& b) { return a.late_us > b.late_us; });
  return out;
}

}  // namespace medley::trace
