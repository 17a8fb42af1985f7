// Verdicts on a running job, from the current content of its recorders: which ranks are stuck and in what,
// which processes are gone or stopped, which ranks are late and since when, what became slower, what is
// exposed. Used by `medley watch`.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trace/trace.hpp"

namespace medley::trace {

struct WatchOptions {
  double stuck_s = 1;        ///< an operation that takes longer counts as stuck
  double window_s = 60;      ///< the last minute is compared with the time before
  double late_share = 0.5;   ///< a straggler arrives last at this share of the collectives
  std::size_t tail = 16384;  ///< records read per rank
};

enum class ProcessState : std::uint8_t { unknown, running, stopped, gone };

/// What the watcher knows about a rank besides its records.
struct RankNow {
  int rank = 0;
  ProcessState process = ProcessState::unknown;
};

struct WatchVerdict {
  std::string kind;        ///< "gone", "stopped", "stuck", "mismatch", "failed", "late", "slower", "exposed"
  bool alarming = false;   ///< a job script should react
  std::vector<int> ranks;  ///< the ranks at fault; empty: unknown
  std::string group, op;
  double since_s = -1;  ///< seconds ago
  double us = 0;        ///< lateness, slowdown or exposed time, as the text says
  std::string sentence;
};

struct WatchReport {
  double at_s = 0;  ///< since 1970
  int world = 0;
  std::size_t ranks = 0;
  std::int64_t operations = 0;         ///< issued by all ranks so far
  std::vector<WatchVerdict> verdicts;  ///< worst first
  /// Whether a verdict of these kinds is alarming, or of any kind if none is named.
  bool alarming(const std::set<std::string>& kinds = {}) const;
};

/// `now_ns` is on the trace's clock, on which all ranks are aligned: their own clocks drift apart by tens of µs a
/// second, which would make a rank of a healthy job late. Processes in any order; a rank without one is unknown.
WatchReport watch_report(Trace& trace, const std::vector<RankNow>& processes, double now_ns,
                         const WatchOptions& options);

/// The kinds of verdicts, the worst first.
std::span<const std::string_view> verdict_kinds();

/// The state of a process on this host.
ProcessState process_state(std::int64_t pid);

/// The report in Prometheus' text format.
std::string prometheus_text(const WatchReport& report);

}  // namespace medley::trace
