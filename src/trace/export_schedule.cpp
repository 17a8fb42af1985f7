#include "trace/export_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <medley/error.hpp>
#include <tuple>

#include "trace/steps.hpp"
#include "trace/summary.hpp"

namespace medley::trace {
namespace {

using OrderedJson = nlohmann::ordered_json;

[[noreturn]] void refuse(const Trace& trace, const std::string& why) {
  throw Error(ErrorKind::invalid, fmt::format("{}: no schedule can be made of it: {}", trace.source, why));
}

/// A rank's operations in the step, and the time that belongs to the step before the first and after the last.
struct RankStep {
  int rank = 0;
  std::vector<Event> events;
  double begin = 0, end = 0;  ///< ns
};

double returned_at(const Event& event) { return event.async ? event.issued : std::max(event.issued, event.completed); }

RankStep read_step(const Trace& trace, const RankTrace& rank, const std::vector<Step>& steps, std::size_t number) {
  const Step step = steps[number];
  RankStep out;
  out.rank = rank.rank;
  Event event;
  for (std::size_t i = step.begin; i < step.end; ++i) {
    if (!rank.read(i, event) || trace.names[event.scope] == step_scope) continue;
    if (event.completed < 0) {
      refuse(trace, fmt::format("the {} of sequence number {} did not complete on rank {}", name(event.op),
                                event.sequence, rank.rank));
    }
    out.events.push_back(event);
  }
  if (out.events.empty()) return out;
  out.begin = step.begin > 0 && rank.read(step.begin - 1, event) ? returned_at(event) : out.events.front().issued;
  for (const Event& one : out.events) out.end = std::max(out.end, returned_at(one));
  // What lies between the last operation and the next step counts as that step's beginning.
  const bool next_follows = number + 1 < steps.size() && steps[number + 1].begin == step.end;
  if (!next_follows && rank.read(step.end, event)) out.end = std::max(out.end, event.issued);
  return out;
}

/// The step of median length.
std::size_t middle_step(const Trace& trace, const RankTrace& rank, const std::vector<Step>& steps) {
  std::vector<std::pair<double, std::size_t>> lengths;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Event first, last;
    const bool whole = steps[i].end > steps[i].begin && rank.read(steps[i].begin, first) &&
                       rank.read(steps[i].end - 1, last) && last.completed >= 0;
    if (whole) lengths.emplace_back(last.completed - first.issued, i);
  }
  if (lengths.empty()) refuse(trace, fmt::format("rank {} has no step whose operations all completed", rank.rank));
  std::sort(lengths.begin(), lengths.end());
  return lengths[lengths.size() / 2].second;
}

/// Names of groups by index. A name that overlapping groups share gets the group's number.
std::vector<std::string> group_names(const Trace& trace) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < trace.groups.size(); ++i) {
    const Group& mine = trace.groups[i];
    const bool shared = std::any_of(trace.groups.begin(), trace.groups.end(), [&](const Group& other) {
      return &other != &mine && other.name == mine.name &&
             std::find_first_of(other.ranks.begin(), other.ranks.end(), mine.ranks.begin(), mine.ranks.end()) !=
                 other.ranks.end();
    });
    names.push_back(shared ? fmt::format("{}#{}", mine.name, i) : mine.name);
  }
  return names;
}

/// The collectives that a group has in the step, in order: every member must have the same, and the largest bytes of a
/// v-collective count.
using StepCollectives = std::map<std::uint32_t, std::vector<std::pair<Op, std::int64_t>>>;

void check_event(const Trace& trace, const Event& event, int rank) {
  const Group& group = trace.groups[event.group];
  const auto lacks = [&](const char* what) {
    refuse(trace, fmt::format("it does not say {} the {} of sequence number {} on rank {}", what, name(event.op),
                              event.sequence, rank));
  };
  if (group.ranks.empty()) lacks("which ranks take part in");
  if (event.unknown.has(Field::bytes) && event.op != Op::barrier) lacks("how many bytes are moved by");
  if (event.call_only) lacks("when the transfer ended of");
  if (!is_collective(event.op) && event.peer < 0) lacks("with whom there was");
}

StepCollectives collectives_of(const Trace& trace, const std::vector<RankStep>& ranks) {
  StepCollectives all;
  std::vector<StepCollectives> by_rank(ranks.size());
  for (const RankStep& rank : ranks) {
    StepCollectives& mine = by_rank[static_cast<std::size_t>(rank.rank)];
    for (const Event& event : rank.events) {
      check_event(trace, event, rank.rank);
      if (is_collective(event.op)) mine[event.group].emplace_back(event.op, event.bytes);
    }
    all.insert(mine.begin(), mine.end());
  }
  const auto of_rank = [&](int rank, std::uint32_t group) -> const auto& {
    if (rank < 0 || rank >= static_cast<int>(by_rank.size())) {
      refuse(trace, fmt::format("group {} names rank {} of {}", trace.groups[group].name, rank, by_rank.size()));
    }
    return by_rank[static_cast<std::size_t>(rank)][group];  // empty where the rank has none, which differs, too
  };
  for (auto& [group, agreed] : all) {
    const std::vector<int>& members = trace.groups[group].ranks;
    const auto first = std::find_if(members.begin(), members.end(),
                                    [&, group = group](int rank) { return !of_rank(rank, group).empty(); });
    for (const int rank : members) {
      const auto& list = of_rank(rank, group);
      for (std::size_t i = 0; i < std::max(list.size(), agreed.size()); ++i) {
        if (i >= list.size() || i >= agreed.size() || list[i].first != agreed[i].first) {
          refuse(trace, fmt::format("collective {} of the step in group {} differs between ranks {} and {}", i + 1,
                                    trace.groups[group].name, first == members.end() ? -1 : *first, rank));
        }
        agreed[i].second = std::max(agreed[i].second, list[i].second);
      }
    }
  }
  return all;
}

OrderedJson compute(double ns) { return {{"kind", "memory"}, {"phase", "compute"}, {"bytes", 0}, {"us", ns / 1e3}}; }

/// The entries of one rank: operations and waits in order of time, with the time between them as computation.
class Entries {
 public:
  Entries(const Trace& trace, const std::vector<std::string>& groups, const StepCollectives& collectives)
      : trace_(trace), groups_(groups), collectives_(collectives) {}

  OrderedJson of(const RankStep& step) {
    // A moment: the program issues event `index`, or ends a wait for it. `from` is when it turned from computing to
    // that.
    std::vector<std::tuple<double, bool, std::size_t, double>> moments;
    for (std::size_t i = 0; i < step.events.size(); ++i) {
      const Event& event = step.events[i];
      moments.emplace_back(event.issued, false, i, event.issued);
      if (event.async && event.exposed > 0)
        moments.emplace_back(event.completed, true, i, event.completed - event.exposed);
    }
    std::sort(moments.begin(), moments.end());
    double now = step.begin;
    for (const auto& [at, is_wait, index, from] : moments) {
      const Event& event = step.events[index];
      compute_until(now, from);
      if (is_wait) {
        wait(index);
        wait_for_completed(step, at);
        now = std::max(now, at);
      } else {
        issue(event, index);
        now = std::max(now, returned_at(event));
      }
    }
    compute_until(now, step.end);
    while (!pending_.empty()) wait(pending_.front());
    return std::move(out_);
  }

 private:
  void compute_until(double now, double end) {
    if (end > now) out_.push_back(compute(end - now));
  }
  static int token(std::size_t index) { return static_cast<int>(index) + 1; }
  void wait(std::size_t index) {
    const auto found = std::find(pending_.begin(), pending_.end(), index);
    if (found == pending_.end()) return;
    out_.push_back({{"kind", "wait"}, {"token", token(index)}});
    pending_.erase(found);
  }
  void wait_for_completed(const RankStep& step, double at) {
    for (const std::size_t index : std::vector(pending_)) {
      if (step.events[index].exposed <= 0 && step.events[index].completed <= at) wait(index);
    }
  }
  void issue(const Event& event, std::size_t index) {
    const ScopeParts parts = parts_of_scope(trace_.names[event.scope]);
    OrderedJson entry = {{"kind", "comm"},         {"phase", parts.phase},
                         {"module", parts.module}, {"dtype", name(event.dtype)},
                         {"op", name(event.op)},   {"group", groups_[event.group]}};
    if (!is_collective(event.op)) {
      entry["bytes"] = event.bytes;
      entry["peer"] = event.peer;
    } else {
      entry["bytes"] = collectives_.at(event.group)[seen_[event.group]++].second;
    }
    if (!event.unknown.has(Field::reduce)) entry["reduce"] = name(event.reduce);
    entry["count"] = 1;
    entry["exposed"] = event.exposed > event.duration() / 2;
    if (event.async) {
      entry["token"] = token(index);
      pending_.push_back(index);
    }
    out_.push_back(std::move(entry));
  }

  const Trace& trace_;
  const std::vector<std::string>& groups_;
  const StepCollectives& collectives_;
  std::map<std::uint32_t, std::size_t> seen_;  ///< collectives of a group so far
  std::vector<std::size_t> pending_;           ///< asynchronous events that nothing has waited for
  OrderedJson out_ = OrderedJson::array();
};

}  // namespace

OrderedJson schedule_json(const Trace& trace, std::size_t given) {
  if (!trace.timed || !trace.waits_known)
    refuse(trace, "the source does not record when the program waited; Medley's own traces do");
  const int world = std::max(trace.world, static_cast<int>(trace.ranks.size()));
  const RankTrace& longest = busiest(trace);
  const std::size_t number = middle_step(trace, longest, find_steps(trace, longest, given).steps);
  std::vector<RankStep> ranks;
  for (int rank = 0; rank < world; ++rank) {
    const auto found =
        std::find_if(trace.ranks.begin(), trace.ranks.end(), [&](const RankTrace& one) { return one.rank == rank; });
    if (found == trace.ranks.end()) refuse(trace, fmt::format("the trace of rank {} is missing", rank));
    const std::vector<Step> steps = find_steps(trace, *found, given).steps;
    if (number >= steps.size()) {
      refuse(trace, fmt::format("rank {} has {} steps, rank {} more; --steps N cuts all alike", rank, steps.size(),
                                longest.rank));
    }
    ranks.push_back(read_step(trace, *found, steps, number));
  }
  const StepCollectives collectives = collectives_of(trace, ranks);
  const std::vector<std::string> names = group_names(trace);
  OrderedJson out = {{"schema", "medley.schedule/1"},
                     {"world", world},
                     {"note", fmt::format("step {} of {}", number + 1, trace.source)},
                     {"ranks", OrderedJson::array()}};
  for (const RankStep& step : ranks) {
    OrderedJson groups = OrderedJson::object();
    for (const Event& event : step.events) groups[names[event.group]] = trace.groups[event.group].ranks;
    out["ranks"].push_back(
        {{"rank", step.rank}, {"groups", std::move(groups)}, {"entries", Entries(trace, names, collectives).of(step)}});
  }
  return out;
}

}  // namespace medley::trace
