// Verdicts on a running job, from what its recorders hold at one moment: who is stuck in what, whose process
// is gone or stopped, who comes late and since when, what became slower, what is exposed. Used by `medley
// watch`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trace/trace.hpp"

namespace medley::trace {

struct WatchOptions {
  double stuck_s = 1;        ///< an operation that takes longer is stuck
  double window_s = 60;      ///< what is judged: the last minute, against what was before
  double late_share = 0.5;   ///< of the collectives at which a straggler comes last
  std::size_t tail = 16384;  ///< records of each rank that are looked at
};

enum class ProcessState : std::uint8_t { unknown, running, stopped, gone };

/// What the watcher knows about a rank besides its records.
struct RankNow {
  int rank = 0;
  ProcessState process = ProcessState::unknown;
};

struct WatchVerdict {
  std::string kind;        ///< "gone", "stopped", "stuck", "mismatch", "failed", "late", "slower", "exposed"
  bool alarming = false;   ///< a job script should act
  std::vector<int> ranks;  ///< who is to blame; empty: nobody can be named
  std::string group, op;
  double since_s = -1;  ///< seconds ago
  double us = 0;        ///< lateness, slowdown or exposed time, as the sentence says
  std::string sentence;
};

struct WatchReport {
  double at_s = 0;  ///< since 1970
  int world = 0;
  std::size_t ranks = 0;
  std::int64_t operations = 0;         ///< issued by all ranks so far
  std::vector<WatchVerdict> verdicts;  ///< the worst first
  bool alarming() const;
};

/// `now_ns` is the time since 1970; processes in any order, ranks without one are unknown.
WatchReport watch_report(Trace& trace, const std::vector<RankNow>& processes, double now_ns,
                         const WatchOptions& options);

/// The state of a process of this host.
ProcessState process_state(std::int64_t pid);

/// The report as Prometheus reads it.
std::string prometheus_text(const WatchReport& report);

}  // namespace medley::trace
