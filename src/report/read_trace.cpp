#include "report/read_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <medley/error.hpp>

#include "report/timeline.hpp"
#include "trace/export.hpp"

namespace medley::report {
namespace {

constexpr std::size_t most_rows = 300, most_skews = 30, most_problems = 10, most_remarks = 20;
constexpr std::int64_t small = 64 << 10;  // what `medley trace` and `medley plan` call small by default

/// The rows that took longest, or sent most where nothing is timed.
std::size_t keep_largest(std::vector<trace::Row>& rows) {
  if (rows.size() <= most_rows) return 0;
  std::stable_sort(rows.begin(), rows.end(), [](const trace::Row& a, const trace::Row& b) {
    return std::pair(a.total_us, a.bytes * a.count) > std::pair(b.total_us, b.bytes * b.count);
  });
  const std::size_t left_out = rows.size() - most_rows;
  rows.resize(most_rows);
  return left_out;
}

/// Of the steps with as many operations as the typical one, the one whose time is closest to the median: the first step
/// of a job warms up and is not representative.
std::size_t median_step(const trace::RankTrace& rank, const trace::Summary& summary) {
  const std::vector<trace::Step>& steps = summary.steps.steps;
  const auto size = [&](std::size_t i) { return steps[i].end - steps[i].begin; };
  std::size_t best = summary.typical;
  double closest = INFINITY;
  trace::Event event;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (size(i) != size(summary.typical)) continue;
    double first = -1, last = -1;
    for (std::size_t place = steps[i].begin; place < steps[i].end; ++place) {
      if (!rank.events->read(place, event)) continue;
      if (first < 0) first = event.issued;
      last = std::max(last, event.completed);
    }
    const double off = std::abs((last - first) / 1e3 - summary.step_us);
    if (off >= closest) continue;
    closest = off;
    best = i;
  }
  return best;
}

template <typename List>
void shorten(List& list, std::size_t most) {
  if (list.size() > most) list.erase(list.begin() + static_cast<std::ptrdiff_t>(most), list.end());
}

}  // namespace

Json read_trace(const std::string& path) {
  const trace::Trace t = trace::open_trace(path);
  if (t.ranks.empty()) throw Error(ErrorKind::invalid, "there is no rank in it");
  const trace::RankTrace& rank = trace::busiest(t);
  trace::Summary summary = trace::summarise(t, rank, trace::find_steps(t, rank));
  std::int64_t operations = 0;
  for (const trace::RankTrace& each : t.ranks) operations += each.issued;
  Json out = trace::to_json(trace::sizes_of(summary.rows, small));
  const std::size_t left_out = keep_largest(summary.rows);
  std::vector<trace::Skew> skew = trace::find_skew(t);
  shorten(skew, most_skews);
  const trace::Problems problems = trace::find_problems(t, most_problems);
  std::vector<std::string> remarks = t.remarks;
  shorten(remarks, most_remarks);
  out.update({{"format", t.format},
              {"world", std::max<int>(t.world, static_cast<int>(t.ranks.size()))},
              {"ranks_traced", t.ranks.size()},
              {"operations", operations},
              {"rank", summary.rank},
              {"steps", summary.steps.steps.size()},
              {"step_us", summary.step_us},
              {"rows", trace::to_json(summary.rows, t)},
              {"rows_left_out", left_out},
              {"skew", trace::to_json(skew, t)},
              {"problems", trace::to_json(problems, t)},
              {"problems_in_all", problems.list.size() + problems.left_out},
              {"remarks", remarks},
              {"timeline", timeline_json(t, summary.steps.steps.empty() ? 0 : median_step(rank, summary))}});
  for (Json& row : out["rows"]) {
    for (const char* unused : {"ranks", "why", "dtype", "wire_bytes", "algorithm", "exposed", "overlapped_us"})
      row.erase(unused);
  }
  return out;
}

}  // namespace medley::report
