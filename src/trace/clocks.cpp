#include "trace/clocks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

namespace medley::trace {
namespace {

// Two ranks complete a collective at the same moment, within about a microsecond. Completions are divided into
// at most this many windows; each contributes its median.
constexpr std::size_t windows = 64;
constexpr std::size_t most_moments = 1 << 18;

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Collectives that complete only after all ranks have joined. The state tells whether one completed: on
/// another rank's clock its time may be negative.
bool ends_together(const Event& event) {
  if (!event.matched || event.state != State::complete) return false;
  switch (event.op) {
    case Op::barrier:
    case Op::all_reduce:
    case Op::all_gather:
    case Op::all_to_all:
    case Op::all_gatherv: return true;
    default: return false;
  }
}

std::uint64_t completion_key(const Event& event) { return (std::uint64_t{event.group} << 40) ^ event.sequence; }

using Moments = std::unordered_map<std::uint64_t, double>;

Moments completions(const RankTrace& rank) {
  Moments moments;
  const std::uint64_t stride = rank.events->size() / most_moments + 1;
  rank.for_each([&](const Event& event) {
    if (ends_together(event) && event.sequence % stride == 0) moments.emplace(completion_key(event), event.completed);
  });
  return moments;
}

/// Both use the same clock, the processor's counter, if they agree on when they started.
bool share_a_counter(const RankTrace& a, const RankTrace& b) {
  if (a.host.empty() || a.host != b.host || a.start.ticks == 0 || b.start.ticks == 0) return false;
  const double by_ticks =
      static_cast<double>(static_cast<std::int64_t>(b.start.ticks - a.start.ticks)) * a.start.ns_per_tick;
  const double by_clock = static_cast<double>(b.start.monotonic_ns - a.start.monotonic_ns);
  return std::abs(by_ticks - by_clock) < 1e6 + 1e-4 * std::abs(by_clock);
}

void set_from_counter(RankTrace& rank, const RankTrace& first) {
  rank.clock.offset =
      static_cast<double>(static_cast<std::int64_t>(rank.start.ticks - first.start.ticks)) * first.start.ns_per_tick;
  rank.clock.drift = first.start.ns_per_tick / rank.start.ns_per_tick - 1;
}

/// Fits a line through the medians of the windows: the offset of the rank's clock from the first rank's.
/// Returns the median distance of single completions from that line.
double refine(RankTrace& rank, const Moments& reference) {
  std::vector<std::pair<double, double>> apart;  // own time, difference
  rank.for_each([&](const Event& event) {
    if (!ends_together(event)) return;
    const auto there = reference.find(completion_key(event));
    if (there != reference.end()) apart.emplace_back(event.completed, there->second - event.completed);
  });
  if (apart.empty()) return std::numeric_limits<double>::infinity();
  std::sort(apart.begin(), apart.end());
  const std::size_t parts = std::clamp<std::size_t>(apart.size() / 16, 1, windows);
  std::vector<std::pair<double, double>> points;
  for (std::size_t w = 0; w < parts; ++w) {
    std::vector<double> distances;
    const std::size_t begin = apart.size() * w / parts, end = apart.size() * (w + 1) / parts;
    for (std::size_t i = begin; i < end; ++i) distances.push_back(apart[i].second);
    points.emplace_back(apart[(begin + end) / 2].first, median(distances));
  }
  std::vector<double> slopes;
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t j = i + 1; j < points.size(); ++j) {
      if (points[j].first > points[i].first)
        slopes.push_back((points[j].second - points[i].second) / (points[j].first - points[i].first));
    }
  }
  const double slope = slopes.empty() ? 0 : median(slopes);
  std::vector<double> offsets;
  for (const auto& [time, distance] : points) offsets.push_back(distance - slope * time);
  const double offset = median(offsets);
  std::vector<double> left;
  for (const auto& [time, distance] : apart) left.push_back(std::abs(distance - offset - slope * time));
  // (t(1+d)+o) shifted by offset + slope of that
  rank.clock.offset += offset + slope * rank.clock.offset;
  rank.clock.drift += slope * (1 + rank.clock.drift);
  return median(left);
}

}  // namespace

void align_clocks(Trace& trace) {
  if (trace.ranks.empty() || !trace.timed) return;
  const RankTrace first = trace.ranks.front();
  std::vector<RankTrace*> elsewhere;
  for (RankTrace& rank : trace.ranks) {
    if (&rank == &trace.ranks.front()) continue;
    if (share_a_counter(first, rank)) {
      set_from_counter(rank, first);
    } else {
      rank.clock.offset = static_cast<double>(rank.start.real_ns - first.start.real_ns);
      elsewhere.push_back(&rank);
    }
  }
  if (!elsewhere.empty()) {
    Moments reference = completions(trace.ranks.front());
    for (RankTrace* rank : elsewhere) {
      trace.clock_error = std::max(trace.clock_error, refine(*rank, reference));
      reference.merge(completions(*rank));  // a rank that shares no comm with the first may share one with this rank
    }
  }
  double earliest = std::numeric_limits<double>::infinity();
  for (const RankTrace& rank : trace.ranks) {
    Event event;
    for (std::size_t i = 0; i < rank.events->size(); ++i) {
      if (!rank.events->read(i, event) || event.issued < 0) continue;
      earliest = std::min(earliest, event.issued * (1 + rank.clock.drift) + rank.clock.offset);
      break;
    }
  }
  if (!std::isfinite(earliest)) return;
  // The trace starts a nanosecond before its first event: a first event at 0 could be rounded to below 0,
  // which means "not known".
  for (RankTrace& rank : trace.ranks) rank.clock.offset -= earliest - 1;
}

}  // namespace medley::trace
