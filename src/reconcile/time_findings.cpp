// Where the time of a step went, in sentences.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/ranks_text.hpp"
#include "reconcile/time.hpp"

namespace medley::reconcile {
namespace {

constexpr double least_us = 0.05;        // less is below what clocks resolve
constexpr double clearly_slower = 1.25;  // beyond the error of the predicted times (docs/plan-time.md)
// Where less than this share of the expected time is bandwidth, the share of the link says nothing.
constexpr double latency_bound = 0.1;

std::string time_text(double us) {
  return us < 1000 ? fmt::format("{:.1f} µs", us) : fmt::format("{:.2f} ms", us / 1000);
}

std::string layers_text(const TimeRow& row) {
  if (row.first_layer == row.last_layer) return fmt::format("layer {}", row.first_layer);
  return fmt::format("layers {} to {}", row.first_layer, row.last_layer);
}

std::string place_text(const TimeRow& row) {
  std::string out = row.bytes && *row.bytes > 0 ? fmt::format("{} B", *row.bytes) : std::string();
  if (!row.group.empty()) out += fmt::format("{}on {}", out.empty() ? "" : " ", row.group);
  if (!row.only.empty()) {
    std::vector<std::string> groups;
    for (const std::vector<int>& ranks : row.only) groups.push_back(core::ranks_text(ranks));
    if (groups.size() > 3) {
      const std::size_t more = groups.size() - 3;
      groups.resize(3);
      groups.push_back(fmt::format("{} more groups", more));
    }
    out += fmt::format(", {}", fmt::join(groups, "; "));
  }
  return out;
}

/// "the all_gathers of layers 3 to 12 (65536 B on dp)".
std::string subject(const TimeRow& row) {
  const std::string place = place_text(row);
  if (row.first_layer < 0) return fmt::format("the {}s of {}", name(row.op), place.empty() ? "unknown size" : place);
  return fmt::format("the {}s of {} ({})", name(row.op), layers_text(row), place);
}

std::string achieved(const TimeRow& row) {
  const double observed = row.observed_us.value_or(0), expected = row.expected_us.value_or(0);
  if (row.slowest_us && observed < clearly_slower * expected && !row.with_waiting)
    return fmt::format("some of {} are slow: {} in the median, {} the slowest, {} expected", subject(row),
                       time_text(observed), time_text(*row.slowest_us), time_text(expected));
  const std::string times = fmt::format("{} each, {} expected{}", time_text(observed), time_text(expected),
                                        row.with_waiting ? ", waiting for other ranks included" : "");
  if (!row.of_link || *row.of_link * observed < latency_bound * expected)
    return fmt::format("{} take {}", subject(row), times);
  return fmt::format("{} reach {:.2g} % of the link: {}", subject(row), 100 * *row.of_link, times);
}

std::string sentence(const TimeRow& row, WaitCause cause, double us) {
  switch (cause) {
    case WaitCause::slow: return achieved(row);
    case WaitCause::queue:
      return fmt::format("{} wait {} a step behind another operation of their group{}", subject(row), time_text(us),
                         row.behind.empty() ? "" : ", mostly " + row.behind);
    case WaitCause::order:
      return fmt::format(
          "{} start {} a step after they are called: lane order, or a hazard with an operation on the "
          "same memory",
          subject(row), time_text(us));
    case WaitCause::overlap:
      return fmt::format("{} are asynchronous, but the program waits for them {} a step before they can be complete",
                         subject(row), time_text(us));
    case WaitCause::blocking:
      return fmt::format("{} block for {} a step by design: nothing runs meanwhile", subject(row), time_text(us));
    default:
      return fmt::format(
          "why the program waits {} a step for {} is unknown: {}", time_text(us), subject(row),
          row.expected_us ? "the source does not say when the other ranks were ready" : "there is no expected time");
  }
}

void find_late_ranks(const std::vector<TimeRow>& rows, std::vector<TimeFinding>& out) {
  struct Late {
    double us = 0, most = 0;
    const TimeRow* at = nullptr;
  };
  std::map<int, Late> ranks;
  for (const TimeRow& row : rows) {
    for (const auto& [rank, us] : row.late) {
      Late& late = ranks[rank];
      late.us += us;
      if (us > late.most) late = {late.us, us, &row};
    }
  }
  for (const auto& [rank, late] : ranks) {
    if (late.us < least_us) continue;
    out.push_back({WaitCause::late_rank, late.us, true,
                   fmt::format("rank {} is late: ranks wait {} a step for it, {} of them at {}", rank,
                               time_text(late.us), time_text(late.most), subject(*late.at))});
  }
}

}  // namespace

std::vector<TimeFinding> time_findings(const std::vector<TimeRow>& rows) {
  std::vector<TimeFinding> out;
  find_late_ranks(rows, out);
  for (const TimeRow& row : rows) {
    if (!row.exposed_us) {
      if (!row.expected_us || !row.observed_us || *row.observed_us < clearly_slower * *row.expected_us) continue;
      out.push_back({WaitCause::slow, row.count * (*row.observed_us - *row.expected_us), false, achieved(row)});
      continue;
    }
    for (const WaitCause cause : {WaitCause::queue, WaitCause::order, WaitCause::slow, WaitCause::overlap,
                                  WaitCause::blocking, WaitCause::unknown}) {
      const double us = row.waits[cause];
      if (us >= least_us) out.push_back({cause, us, true, sentence(row, cause, us)});
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const TimeFinding& a, const TimeFinding& b) { return a.us > b.us; });
  return out;
}

}  // namespace medley::reconcile
