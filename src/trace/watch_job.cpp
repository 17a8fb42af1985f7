#include "trace/watch_job.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <medley/error.hpp>
#include <nlohmann/json.hpp>

#include "base/ticks.hpp"
#include "trace/find_job.hpp"
#include "trace/prometheus_endpoint.hpp"

namespace medley::trace {
namespace {

// Looks in a row without a readable file before the job counts as ended.
constexpr int most_absent = 4;

std::string own_host() {
  char host[64] = {};
  gethostname(host, sizeof host - 1);
  return host;
}

/// Now on the trace's clock. A rank of this host shares its counter with the watcher, which is exact however long the
/// job has run; otherwise the time of day must do, of which the first rank's clock drifts away.
double now_on_clock_of(const Trace& t) {
  const std::string host = own_host();
  for (const RankTrace& rank : t.ranks) {
    if (rank.host != host || rank.start.ticks == 0) continue;
    const double own =
        static_cast<double>(static_cast<std::int64_t>(core::ticks() - rank.start.ticks)) * rank.start.ns_per_tick;
    const double by_clock = static_cast<double>(core::clock_ns(CLOCK_MONOTONIC) - rank.start.monotonic_ns);
    if (own < 0 || std::abs(own - by_clock) > 1e7 + 1e-2 * by_clock) continue;  // a counter of before a restart
    return own * (1 + rank.clock.drift) + rank.clock.offset;
  }
  if (t.ranks.empty()) return 0;
  const RankTrace& first = t.ranks.front();
  const double since = static_cast<double>(core::clock_ns(CLOCK_REALTIME) - first.start.real_ns);
  return since * (1 + first.clock.drift) + first.clock.offset;
}

std::vector<RankNow> processes_of(const Trace& t) {
  const std::string host = own_host();
  std::vector<RankNow> out;
  for (const RankTrace& rank : t.ranks)
    out.push_back({rank.rank, rank.host == host ? process_state(rank.pid) : ProcessState::unknown});
  return out;
}

}  // namespace

std::optional<WatchLook> look_at_job(const std::string& path, const WatchOptions& options) {
  try {
    Trace t = open_trace(path);
    const std::vector<RankNow> processes = processes_of(t);
    const bool all_gone = !processes.empty() && std::all_of(processes.begin(), processes.end(), [](const RankNow& now) {
      return now.process == ProcessState::gone;
    });
    WatchLook look{watch_report(t, processes, now_on_clock_of(t), options), all_gone};
    look.report.at_s = static_cast<double>(core::clock_ns(CLOCK_REALTIME)) / 1e9;
    return look;
  } catch (const Error&) {
    return std::nullopt;  // a record was being written, or the last rank removed its file
  }
}

std::vector<WatchVerdict> FreshVerdicts::of(const WatchReport& report) {
  std::set<std::string> now;
  std::vector<WatchVerdict> fresh;
  for (const WatchVerdict& v : report.verdicts) {
    const std::string key = fmt::format("{}|{}|{}|{}", v.kind, v.group, v.op, v.ranks.empty() ? -1 : v.ranks.front());
    now.insert(key);
    if (!known_.contains(key)) fresh.push_back(v);
  }
  known_ = std::move(now);
  return fresh;
}

WatchResult watch(const WatchRequest& request, const WatchHooks& hooks) {
  const std::string job = running_job(request.path);
  static_cast<void>(open_trace(job));
  PrometheusEndpoint endpoint(request.prometheus);
  const auto begin = std::chrono::steady_clock::now();
  FreshVerdicts fresh;
  WatchResult result;
  std::string metrics;
  for (int absent = 0;;) {
    const std::optional<WatchLook> look = look_at_job(job, request.options);
    absent = look ? 0 : absent + 1;
    if (look) {
      metrics = prometheus_text(look->report);
      result.alarmed = look->report.alarming(request.kinds);
      hooks.looked(look->report, fresh.of(look->report));
    }
    const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (request.once || hooks.stop() || (request.for_s > 0 && passed >= request.for_s)) break;
    if (result.alarmed && request.until_problem) break;
    result.job_ended = (look && look->all_gone) || absent > most_absent;
    if (result.job_ended) break;
    endpoint.serve(request.every_s, metrics, hooks.stop);
  }
  return result;
}

nlohmann::ordered_json to_json(const WatchReport& report) {
  nlohmann::ordered_json verdicts = nlohmann::ordered_json::array();
  for (const WatchVerdict& v : report.verdicts)
    verdicts.push_back({{"kind", v.kind},
                        {"alarming", v.alarming},
                        {"ranks", v.ranks},
                        {"group", v.group},
                        {"op", v.op},
                        {"since_s", v.since_s},
                        {"us", v.us},
                        {"sentence", v.sentence}});
  return {{"at", report.at_s},
          {"world", report.world},
          {"ranks", report.ranks},
          {"operations", report.operations},
          {"verdicts", verdicts}};
}

}  // namespace medley::trace
