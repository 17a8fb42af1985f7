#include "reconcile/causes.hpp"

#include <algorithm>
#include <medley/error.hpp>

namespace medley::reconcile {
namespace {

/// Whether the other plan has exactly what was observed where the first one had not.
bool settles(const Line& line, const Result& other) {
  const Item& item = line.observed.count > 0 ? line.observed : line.expected;
  const std::int64_t wanted = line.observed.count;
  for (const Line& o : other.lines) {
    const Item& there = o.observed.count > 0 ? o.observed : o.expected;
    if (there.op != item.op || there.ranks != item.ranks || there.bytes != item.bytes) continue;
    return o.verdict == Verdict::matched && o.observed.count == wanted;
  }
  return wanted == 0;  // planned no more, and not seen
}

struct Trial {
  std::string cause;
  Result result;
  std::size_t settled = 0;
};

std::vector<Trial> try_all(const Result& result, const Plan& plan, const Items& observed) {
  std::vector<Trial> trials;
  for (const WhatIf& what_if : what_ifs(plan)) {
    plan::Layout layout = plan.layout;
    plan::Framework framework = plan.framework;
    if (!what_if.change(layout, framework)) continue;
    try {
      plan::check(layout, plan.model);
      const auto schedule = plan::make_schedule(plan.model, layout, framework, result.rank);
      Trial trial{what_if.cause,
                  compare(expected_items(schedule, layout, result.rank), observed, result.rank)};
      for (const Line& line : result.lines) {
        if (line.verdict != Verdict::matched && settles(line, trial.result)) ++trial.settled;
      }
      if (trial.settled > 0 && trial.result.differences() < result.differences())
        trials.push_back(std::move(trial));
    } catch (const Error&) {
      // the layout cannot be changed this way
    }
  }
  std::stable_sort(trials.begin(), trials.end(), [](const Trial& a, const Trial& b) {
    return a.result.differences() != b.result.differences() ? a.result.differences() < b.result.differences()
                                                            : a.settled > b.settled;
  });
  return trials;
}

}  // namespace

void explain(Result& result, const std::optional<Plan>& plan, const Items& observed) {
  if (result.differences() == 0) return;
  if (plan) {
    const std::vector<Trial> trials = try_all(result, *plan, observed);
    for (Line& line : result.lines) {
      if (line.verdict == Verdict::matched) continue;
      const auto trial =
          std::find_if(trials.begin(), trials.end(), [&](const Trial& t) { return settles(line, t.result); });
      if (trial != trials.end()) line.cause = trial->cause;
    }
  }
  for (Line& line : result.lines) {
    if (line.verdict == Verdict::matched) continue;
    for (const Rule rule : rules()) {
      if (!line.cause.empty()) break;
      line.cause = rule(line, result);
    }
  }
}

}  // namespace medley::reconcile
