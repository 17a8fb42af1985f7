#include "trace/watch.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <map>
#include <set>

#include "base/ranks_text.hpp"
#include "trace/problems.hpp"
#include "trace/stragglers.hpp"
#include "trace/stuck.hpp"

namespace medley::trace {
namespace {

/// The last records of a rank.
class Tail final : public EventSource {
 public:
  Tail(std::shared_ptr<EventSource> all, std::size_t most)
      : all_(std::move(all)), first_(all_->size() > most ? all_->size() - most : 0) {}
  std::size_t size() const override { return all_->size() - first_; }
  bool read(std::size_t place, Event& event) const override { return all_->read(first_ + place, event); }

 private:
  std::shared_ptr<EventSource> all_;
  std::size_t first_;
};

/// All processes ended, and none of them in the middle of something.
bool ended_in_order(const Trace& trace, const std::vector<RankNow>& processes) {
  return !processes.empty() && processes.size() == trace.ranks.size() &&
         std::all_of(processes.begin(), processes.end(),
                     [](const RankNow& now) { return now.process == ProcessState::gone; }) &&
         find_problems(trace).list.empty();
}

void find_lost(const Trace& trace, const std::vector<RankNow>& processes, WatchReport& out) {
  if (ended_in_order(trace, processes)) return;
  for (const RankNow& now : processes) {
    if (now.process != ProcessState::gone && now.process != ProcessState::stopped) continue;
    const bool gone = now.process == ProcessState::gone;
    const RankTrace& rank = trace.rank(now.rank);
    WatchVerdict v{gone ? "gone" : "stopped", true, {now.rank}, "", "", -1, 0, ""};
    v.sentence =
        fmt::format("rank {}'s process {} on {} {}", now.rank, rank.pid, rank.host.empty() ? "this host" : rank.host,
                    gone ? "is gone" : "is stopped (SIGSTOP or a debugger)");
    out.verdicts.push_back(std::move(v));
  }
}

void find_late(const Trace& trace, double now, const WatchOptions& options, WatchReport& out) {
  for (const Straggler& s : find_stragglers(trace, now, options.window_s * 1e9, options.late_share)) {
    const std::string& group = trace.groups[s.group].name;
    const double since = seconds_of(now - s.since_ns);
    WatchVerdict v{"late", true, {s.rank}, group, "", since, s.median_ns / 1e3, ""};
    v.sentence = fmt::format(
        "rank {} is late since {:.1f} s: last at {} of the {} collectives on {} that waited for a rank, {:.0f} µs behind the others "
        "at the median, {:.2f} s in all",
        s.rank, since, s.last, s.collectives, group, s.median_ns / 1e3, seconds_of(s.sum_ns));
    out.verdicts.push_back(std::move(v));
  }
}

/// Kinds of operations whose time has changed from before the window.
void find_changes(const Trace& trace, double now, const WatchOptions& options, WatchReport& out) {
  struct Times {
    std::vector<double> before, lately;
  };
  std::map<std::tuple<std::uint32_t, Op, std::int64_t>, Times> kinds;
  double exposed = 0, most_exposed = 0;
  std::uint32_t worst = 0;
  std::map<std::uint32_t, double> by_group;
  double oldest = now;
  for (const RankTrace& rank : trace.ranks) {
    rank.for_each([&](const Event& e) {
      if (e.completed < 0) return;
      const bool lately = e.completed >= now - options.window_s * 1e9;
      auto& times = kinds[{e.group, e.op, e.bytes}];
      (lately ? times.lately : times.before).push_back(e.duration());
      if (!lately) return;
      oldest = std::min(oldest, e.issued);
      exposed += e.exposed;
      double& sum = by_group[e.group] += e.exposed;
      if (sum > most_exposed) {
        most_exposed = sum;
        worst = e.group;
      }
    });
  }
  const auto median = [](std::vector<double>& of) {
    std::nth_element(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2), of.end());
    return of[of.size() / 2];
  };
  for (auto& [kind, times] : kinds) {
    if (times.before.size() < 8 || times.lately.size() < 8) continue;
    const double before = median(times.before), lately = median(times.lately);
    if (lately < 1.5 * before || lately - before < 20e3) continue;
    const auto& [group, op, bytes] = kind;
    WatchVerdict v{"slower",
                   false,
                   {},
                   trace.groups[group].name,
                   std::string(medley::name(op)),
                   options.window_s,
                   (lately - before) / 1e3,
                   ""};
    v.sentence =
        fmt::format("{} of {} B on {} takes {:.0f} µs in the last {:.0f} s, {:.0f} µs before", medley::name(op), bytes,
                    trace.groups[group].name, lately / 1e3, options.window_s, before / 1e3);
    out.verdicts.push_back(std::move(v));
  }
  const double span = (now - oldest) * static_cast<double>(std::max<std::size_t>(1, trace.ranks.size()));
  if (exposed <= 0 || span <= 0 || exposed < 0.05 * span) return;
  WatchVerdict v{"exposed", false, {}, trace.groups[worst].name, "", seconds_of(now - oldest), exposed / 1e3, ""};
  v.sentence = fmt::format("{:.0f} % of the time is spent waiting for communication, most of it on {}",
                           100 * exposed / span, trace.groups[worst].name);
  out.verdicts.push_back(std::move(v));
}

constexpr std::string_view kinds_by_weight[] = {"gone",  "stopped", "mismatch", "failed",
                                                "stuck", "late",    "slower",   "exposed"};

auto weight(const WatchVerdict& v) {
  return std::find(std::begin(kinds_by_weight), std::end(kinds_by_weight), v.kind) - std::begin(kinds_by_weight);
}

}  // namespace

std::span<const std::string_view> verdict_kinds() { return kinds_by_weight; }

bool WatchReport::alarming(const std::set<std::string>& kinds) const {
  return std::any_of(verdicts.begin(), verdicts.end(),
                     [&](const WatchVerdict& v) { return v.alarming && (kinds.empty() || kinds.contains(v.kind)); });
}

WatchReport watch_report(Trace& trace, const std::vector<RankNow>& processes, double now_ns,
                         const WatchOptions& options) {
  WatchReport out;
  out.world = trace.world;
  out.ranks = trace.ranks.size();
  for (RankTrace& rank : trace.ranks) {
    out.operations += rank.issued;
    rank.events = std::make_shared<Tail>(rank.events, options.tail);
  }
  find_lost(trace, processes, out);
  for (WatchVerdict& v : stuck_verdicts(trace, now_ns, options.stuck_s)) out.verdicts.push_back(std::move(v));
  find_late(trace, now_ns, options, out);
  find_changes(trace, now_ns, options, out);
  std::stable_sort(out.verdicts.begin(), out.verdicts.end(),
                   [](const auto& a, const auto& b) { return weight(a) < weight(b); });
  return out;
}

ProcessState process_state(std::int64_t pid) {
  if (pid <= 0) return ProcessState::unknown;
  if (kill(static_cast<pid_t>(pid), 0) != 0) return errno == ESRCH ? ProcessState::gone : ProcessState::running;
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(stat, text);
  const std::size_t end = text.rfind(')');  // the process name may hold any character
  if (end == std::string::npos || end + 2 >= text.size()) return ProcessState::unknown;
  const char state = text[end + 2];
  return state == 'T' || state == 't'   ? ProcessState::stopped
         : state == 'Z' || state == 'X' ? ProcessState::gone
                                        : ProcessState::running;
}

std::string prometheus_text(const WatchReport& report) {
  std::string out = fmt::format(
      "# HELP medley_operations_total Operations issued by all ranks.\n# TYPE medley_operations_total "
      "counter\n"
      "medley_operations_total {}\n# HELP medley_ranks Ranks that are recorded.\n# TYPE medley_ranks "
      "gauge\nmedley_ranks {}\n"
      "# HELP medley_verdict What is wrong with the job; the value is for how many seconds.\n# TYPE "
      "medley_verdict gauge\n",
      report.operations, report.ranks);
  const auto quoted = [](const std::string& text) {
    std::string safe;
    for (const char c : text) {
      if (c == '"' || c == '\\') safe += '\\';
      safe += c == '\n' ? ' ' : c;
    }
    return safe;
  };
  std::set<std::string> seen;  // a series may appear only once
  for (const WatchVerdict& v : report.verdicts) {
    std::string ranks;
    for (const int rank : v.ranks) ranks += (ranks.empty() ? "" : ",") + std::to_string(rank);
    const std::string series = fmt::format("medley_verdict{{kind=\"{}\",group=\"{}\",op=\"{}\",ranks=\"{}\"}}", v.kind,
                                           quoted(v.group), v.op, ranks);
    if (seen.insert(series).second) out += fmt::format("{} {:.3f}\n", series, std::max(0.0, v.since_s));
  }
  return out;
}

}  // namespace medley::trace
