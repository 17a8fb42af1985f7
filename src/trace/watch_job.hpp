// Looks at a running job again and again until it ends, a problem shows or the time is used. What `medley
// watch` runs.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "trace/watch.hpp"

namespace medley::trace {

struct WatchRequest {
  std::string path;  ///< the job's recorders, as open_trace() takes them, or a folder with one running job
  WatchOptions options{};
  double every_s = 0.5;  ///< between two looks
  double for_s = 0;      ///< stop after this time; 0: when the job ends
  int prometheus = 0;    ///< a port of this host that serves the verdicts; 0: none
  bool once = false;
  bool until_problem = false;     ///< stop at the first alarming verdict
  std::set<std::string> kinds{};  ///< of the verdicts that count as a problem; empty: all that are alarming
};

/// One look at a job.
struct WatchLook {
  WatchReport report;
  bool all_gone = false;  ///< all its processes are gone from this host
};

struct WatchResult {
  bool alarmed = false;    ///< at the last look
  bool job_ended = false;  ///< that is why it stopped
};

struct WatchHooks {
  /// After every look, with the verdicts that the look before did not have.
  std::function<void(const WatchReport&, const std::vector<WatchVerdict>& fresh)> looked =
      [](const WatchReport&, const std::vector<WatchVerdict>&) {};
  std::function<bool()> stop = [] { return false; };
};

/// Nothing while the job's files are being made, or once they are gone.
std::optional<WatchLook> look_at_job(const std::string& path, const WatchOptions& options);

/// Says which verdicts are new: another kind, group, operation or first rank than in the report before.
class FreshVerdicts {
 public:
  std::vector<WatchVerdict> of(const WatchReport& report);

 private:
  std::set<std::string> known_;
};

/// Throws Error(invalid) for what is no recording.
WatchResult watch(const WatchRequest& request, const WatchHooks& hooks);

nlohmann::ordered_json to_json(const WatchReport& report);

}  // namespace medley::trace
