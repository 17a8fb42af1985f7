#include "trace/problems.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/ranks_text.hpp"

namespace medley::trace {
namespace {

using Collective = std::pair<std::uint32_t, std::uint64_t>;  // group, number

bool unfinished(const Event& event) { return event.state != State::complete; }

/// A v-collective looks like the regular operation on a rank whose own parts are equal.
Op kind_of(Op op) { return op == Op::all_to_allv ? Op::all_to_all : op; }

/// Whether two ranks called different operations for one collective. Fields that the source lacks cannot differ.
bool differ(const Event& a, const Event& b) {
  const auto known = [&](Field field) { return !a.unknown.has(field) && !b.unknown.has(field); };
  if (kind_of(a.op) != kind_of(b.op)) return true;
  if (a.op == Op::barrier) return false;
  if (rooted(a.op) && known(Field::root) && a.peer != b.peer) return true;
  if (reduces(a.op) && known(Field::reduce) && a.reduce != b.reduce) return true;
  if (known(Field::dtype) && a.dtype != b.dtype) return true;
  return known(Field::bytes) && a.bytes != b.bytes && a.op != Op::all_to_allv && b.op != Op::all_to_allv;
}

/// The call as far as it can differ.
std::string call_text(const Event& e) {
  std::string out = fmt::format("{} of {} B", medley::name(e.op), e.bytes);
  if (!e.unknown.has(Field::dtype) && e.op != Op::barrier) out += fmt::format(" {}", medley::name(e.dtype));
  if (reduces(e.op) && !e.unknown.has(Field::reduce)) out += fmt::format(" {}", medley::name(e.reduce));
  if (rooted(e.op) && e.peer >= 0) out += fmt::format(" with root {}", e.peer);
  return out;
}

std::string group_text(const Group& group) {
  if (group.ranks.empty() || group.ranks.size() > 8) return fmt::format("{} ({} ranks)", group.name, group.size);
  return fmt::format("{} ({})", group.name, core::ranks_text(group.ranks));
}

/// One rank's part in a collective.
struct Part {
  Event event;
  bool issued = false;
};
/// The last collective of a rank on a group.
struct Last {
  std::uint64_t sequence = 0;
  Event event;
};

struct Evidence {
  std::map<Collective, std::map<int, Part>> collectives;
  std::vector<std::pair<int, Event>> messages;
  std::map<std::pair<std::uint32_t, int>, Last> last;
  std::size_t left_out = 0;
};

Evidence gather(const Trace& trace, std::size_t most) {
  Evidence out;
  for (const RankTrace& rank : trace.ranks) {
    rank.for_each([&](const Event& event) {
      if (event.matched) {
        Last& last = out.last[{event.group, rank.rank}];
        if (event.sequence >= last.sequence) last = {event.sequence, event};
      }
      if (!unfinished(event)) return;
      if (!event.matched) {
        if (out.messages.size() < most) out.messages.emplace_back(rank.rank, event);
        else ++out.left_out;
      } else if (out.collectives.size() < most || out.collectives.contains({event.group, event.sequence})) {
        out.collectives[{event.group, event.sequence}];
      } else {
        ++out.left_out;
      }
    });
  }
  if (out.collectives.empty()) return out;
  for (const RankTrace& rank : trace.ranks) {
    rank.for_each([&](const Event& event) {
      if (!event.matched) return;
      const auto found = out.collectives.find({event.group, event.sequence});
      if (found != out.collectives.end()) found->second[rank.rank] = {event, true};
    });
  }
  return out;
}

/// Groups the ranks by what they did, in words.
std::string story(const Trace& trace, const Evidence& evidence, const Group& group, const Event& event,
                  Problem& problem, const std::map<int, Part>& parts) {
  std::map<std::string, std::vector<int>> said;
  std::vector<std::string> order;
  const auto say = [&](int rank, const std::string& what) {
    if (!said.contains(what)) order.push_back(what);
    said[what].push_back(rank);
  };
  std::set<int> members(group.ranks.begin(), group.ranks.end());
  for (const auto& [rank, part] : parts) members.insert(rank);
  for (const int rank : members) {
    const auto part = parts.find(rank);
    const bool recorded =
        std::any_of(trace.ranks.begin(), trace.ranks.end(), [&](const auto& r) { return r.rank == rank; });
    if (part != parts.end()) {
      const Event& e = part->second.event;
      problem.ranks[rank] = std::string(name(e.state));
      const bool other = differ(e, event);
      const std::string call = other ? fmt::format("called {} instead, ", call_text(e)) : "";
      if (other) problem.at_fault.push_back(rank);
      if (e.state != State::complete && e.state != State::failed && e.awaited) problem.waiting.push_back(rank);
      say(rank, call + (e.state == State::complete  ? "complete"
                        : e.state == State::failed  ? "failed"
                        : e.state == State::started ? "started it, not complete"
                                                    : "issued it, not started"));
    } else if (!recorded) {
      problem.ranks[rank] = "no trace";
      problem.at_fault.push_back(rank);
      say(rank, "left no trace");
    } else {
      const auto last = evidence.last.find({event.group, rank});
      if (last != evidence.last.end() && last->second.sequence > event.sequence) {
        problem.ranks[rank] = "overwritten";
        say(rank, "has overwritten its record of it");
        continue;
      }
      problem.ranks[rank] = "not issued";
      problem.at_fault.push_back(rank);
      say(rank, last == evidence.last.end()
                    ? "did not get there: no collective of it on this comm"
                    : fmt::format("did not get there: its last is {} #{} ({})", medley::name(last->second.event.op),
                                  last->second.sequence, name(last->second.event.state)));
    }
  }
  std::string text;
  for (const std::string& what : order)
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", core::ranks_text(said[what]), what);
  return text;
}

/// The call that most ranks agree on; of equally many, the one of the lowest rank.
Event as_most_called(const std::map<int, Part>& parts) {
  std::vector<std::pair<Event, std::size_t>> calls;
  for (const auto& [rank, part] : parts) {
    const auto same = std::find_if(calls.begin(), calls.end(),
                                   [&part = part](const auto& call) { return !differ(call.first, part.event); });
    if (same == calls.end()) calls.emplace_back(part.event, 1);
    else ++same->second;
  }
  return std::max_element(calls.begin(), calls.end(), [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

Problem about(const Trace& trace, const Evidence& evidence, const std::map<int, Part>& parts) {
  Problem problem;
  problem.event = as_most_called(parts);
  bool mismatch = false, failed = false;
  for (const auto& [rank, part] : parts) {
    const Event& e = part.event;
    mismatch = mismatch || differ(e, problem.event);
    failed = failed || e.state == State::failed;
  }
  problem.kind = mismatch ? "mismatch" : failed ? "failed" : "unfinished";
  const Group& group = trace.groups[problem.event.group];
  problem.sentence = fmt::format("{} #{} of {} B on {}: ", medley::name(problem.event.op), problem.event.sequence,
                                 problem.event.bytes, group_text(group));
  problem.sentence += story(trace, evidence, group, problem.event, problem, parts);
  // Where the others are through, who is not holds nobody up but itself.
  const auto complete = [](const auto& part) { return part.second.event.state == State::complete; };
  if (problem.at_fault.empty() && std::any_of(parts.begin(), parts.end(), complete)) {
    for (const auto& part : parts)
      if (!complete(part)) problem.at_fault.push_back(part.first);
  }
  return problem;
}

}  // namespace

Problems find_problems(const Trace& trace, std::size_t most) {
  const Evidence evidence = gather(trace, most);
  Problems out;
  out.left_out = evidence.left_out;
  for (const auto& [which, parts] : evidence.collectives) out.list.push_back(about(trace, evidence, parts));
  for (const auto& [rank, event] : evidence.messages) {
    const bool failed = event.state == State::failed;
    Problem problem{failed ? "failed" : "unfinished", event, {{rank, std::string(name(event.state))}}, {}, {}, ""};
    const bool answered =
        std::any_of(evidence.messages.begin(), evidence.messages.end(), [&, at = rank, &e = event](const auto& m) {
          return m.first == e.peer && m.second.peer == at && m.second.op != e.op && m.second.group == e.group;
        });
    if (event.peer >= 0 && !answered) problem.at_fault.push_back(static_cast<int>(event.peer));
    const std::string peer = event.peer < 0 ? "any rank" : fmt::format("rank {}", event.peer);
    problem.sentence =
        fmt::format("{} of {} B {} {} on {}, message #{} of rank {}: {}", medley::name(event.op), event.bytes,
                    event.op == Op::send ? "to" : "from", peer, trace.groups[event.group].name, event.sequence, rank,
                    failed                          ? "failed"
                    : event.state == State::started ? "started, not complete"
                                                    : "issued, not started");
    out.list.push_back(std::move(problem));
  }
  std::stable_sort(out.list.begin(), out.list.end(), [](const Problem& a, const Problem& b) {
    const bool first = a.kind == "mismatch", second = b.kind == "mismatch";
    return first != second ? first : a.event.issued < b.event.issued;
  });
  return out;
}

}  // namespace medley::trace
