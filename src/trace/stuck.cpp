#include "trace/stuck.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/ranks_text.hpp"
#include "trace/problems.hpp"

namespace medley::trace {
namespace {

constexpr std::size_t most_verdicts = 50;

/// A rank's last operation, on any comm.
std::optional<Event> last_of(const Trace& trace, int number) {
  Event event;
  for (const RankTrace& rank : trace.ranks) {
    if (rank.rank != number) continue;
    for (std::size_t i = rank.events->size(); i-- > 0;)
      if (rank.events->read(i, event)) return event;
  }
  return std::nullopt;
}

/// What a rank at fault does instead, where the problem's sentence does not say it already.
std::string instead(const Trace& trace, const Problem& problem, int rank) {
  const std::optional<Event> last = last_of(trace, rank);
  if (!last) return fmt::format("; rank {} has called nothing", rank);
  const bool said = problem.event.matched && last->matched && last->group == problem.event.group &&
                    (problem.ranks.at(rank) == "not issued" || last->sequence == problem.event.sequence);
  if (said) return "";
  return fmt::format("; the last call of rank {} is {} #{} on {} ({})", rank, medley::name(last->op), last->sequence,
                     trace.groups[last->group].name, name(last->state));
}

/// Problems that wait for each other, each in one list: a rank that the first one misses waits in the second, and so on back
/// to the first.
std::vector<std::vector<const Problem*>> cycles_in(const std::vector<Problem>& problems) {
  const std::size_t n = problems.size();
  const auto waits_for = [&](std::size_t a, std::size_t b) {
    return std::any_of(problems[a].at_fault.begin(), problems[a].at_fault.end(), [&](int rank) {
      return std::find(problems[b].waiting.begin(), problems[b].waiting.end(), rank) != problems[b].waiting.end();
    });
  };
  std::vector<std::vector<bool>> reaches(n, std::vector<bool>(n));
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = 0; b < n; ++b) reaches[a][b] = a != b && waits_for(a, b);
  for (std::size_t via = 0; via < n; ++via)
    for (std::size_t a = 0; a < n; ++a)
      for (std::size_t b = 0; b < n; ++b) reaches[a][b] = reaches[a][b] || (reaches[a][via] && reaches[via][b]);
  std::vector<std::vector<const Problem*>> cycles;
  for (std::size_t a = 0; a < n; ++a) {
    if (!reaches[a][a]) continue;
    std::vector<const Problem*> cycle;
    bool first = true;
    for (std::size_t b = 0; b < n; ++b) {
      if (!reaches[a][b] || !reaches[b][a]) continue;
      first = first && b >= a;
      cycle.push_back(&problems[b]);
    }
    if (first) cycles.push_back(std::move(cycle));
  }
  return cycles;
}

std::string cycle_text(const Trace& trace, const std::vector<const Problem*>& cycle) {
  std::set<int> ranks;
  std::vector<std::string> groups, waits;
  for (const Problem* problem : cycle) {
    const std::string& group = trace.groups[problem->event.group].name;
    ranks.insert(problem->waiting.begin(), problem->waiting.end());
    groups.push_back(group);
    waits.push_back(fmt::format("{} in {} #{} on {}", core::ranks_text(problem->waiting),
                                medley::name(problem->event.op), problem->event.sequence, group));
  }
  const std::string who = core::ranks_text({ranks.begin(), ranks.end()});
  return fmt::format("{}, a cycle: {}; issue their operations in one order on all ranks, or asynchronously",
                     groups.size() == 2
                         ? fmt::format("{} use comms {} and {} in opposite order", who, groups[0], groups[1])
                         : fmt::format("comms {} wait for each other on {}", fmt::join(groups, ", "), who),
                     fmt::join(waits, ", "));
}

WatchVerdict verdict_on(const Trace& trace, const Problem& problem, double age) {
  WatchVerdict v;
  v.kind = problem.kind == "unfinished" ? "stuck" : problem.kind;
  v.alarming = true;
  v.ranks = problem.at_fault;
  v.group = trace.groups[problem.event.group].name;
  v.op = medley::name(problem.event.op);
  v.since_s = age;
  v.sentence = problem.sentence;
  return v;
}

}  // namespace

std::vector<WatchVerdict> stuck_verdicts(const Trace& trace, double now, double stuck_s) {
  std::vector<WatchVerdict> out;
  std::vector<Problem> stuck;
  const auto age_of = [&](const Problem& problem) { return seconds_of(now - problem.event.issued); };
  for (Problem& problem : find_problems(trace).list) {
    if (problem.kind == "unfinished") {
      if (age_of(problem) >= stuck_s) stuck.push_back(std::move(problem));
      continue;
    }
    out.push_back(verdict_on(trace, problem, age_of(problem)));
    for (const int rank : problem.at_fault) out.back().sentence += instead(trace, problem, rank);
  }
  std::set<const Problem*> in_cycles;
  for (const auto& cycle : cycles_in(stuck)) {
    in_cycles.insert(cycle.begin(), cycle.end());
    const Problem& first = **std::min_element(cycle.begin(), cycle.end(), [](const Problem* a, const Problem* b) {
      return a->event.issued < b->event.issued;
    });
    out.push_back(verdict_on(trace, first, age_of(first)));
    out.back().sentence = fmt::format("for {:.1f} s: {}", age_of(first), cycle_text(trace, cycle));
    std::set<int> ranks;
    for (const Problem* problem : cycle) ranks.insert(problem->waiting.begin(), problem->waiting.end());
    out.back().ranks.assign(ranks.begin(), ranks.end());
  }
  for (const Problem& problem : stuck) {
    if (in_cycles.contains(&problem)) continue;
    out.push_back(verdict_on(trace, problem, age_of(problem)));
    std::string& sentence = out.back().sentence;
    for (const int rank : problem.at_fault) sentence += instead(trace, problem, rank);
    sentence = fmt::format("for {:.1f} s: {}", age_of(problem), sentence);
  }
  if (out.size() > most_verdicts) out.resize(most_verdicts);
  return out;
}

}  // namespace medley::trace
