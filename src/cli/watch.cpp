// medley watch: repeated verdicts on a running job, for a person, a job script or Prometheus.
#include "trace/watch_job.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <ctime>

#include "cli/command.hpp"
#include "record/record_folder.hpp"

namespace medley::cli {
namespace {

struct WatchArguments {
  trace::WatchRequest request;
  std::string kinds, json;
};

volatile std::sig_atomic_t watch_interrupted = 0;

std::string time_text() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%H:%M:%S", std::localtime(&now));
  return text;
}

void show(const WatchArguments& given, const trace::WatchReport& report,
          const std::vector<trace::WatchVerdict>& fresh) {
  if (given.json == "-") {
    fmt::print("{}\n", trace::to_json(report).dump());
  } else {
    write_json(given.json, trace::to_json(report));
    for (const trace::WatchVerdict& v : fresh) fmt::print("{} {:<8} {}\n", time_text(), v.kind, v.sentence);
    if (given.request.once && report.verdicts.empty())
      fmt::print("{} operations of {} ranks; nothing is wrong\n", report.operations, report.ranks);
  }
  std::fflush(stdout);
}

std::string verdict_kind(const std::string& text) {
  const auto known = trace::verdict_kinds();
  if (std::find(known.begin(), known.end(), text) == known.end())
    throw Error(ErrorKind::invalid,
                fmt::format("--kinds: there is no verdict '{}'; there are {}", text, fmt::join(known, ", ")));
  return text;
}

int run_watch(WatchArguments& given) {
  for (const std::string& kind : parse_list(given.kinds)) given.request.kinds.insert(verdict_kind(kind));
  if (given.request.path.empty()) given.request.path = core::flight_folder();
  std::signal(SIGINT, [](int) { watch_interrupted = 1; });
  const trace::WatchResult result =
      trace::watch(given.request, {.looked = [&](const auto& report, const auto& fresh) { show(given, report, fresh); },
                                   .stop = [] { return watch_interrupted != 0; }});
  if (result.job_ended && given.json != "-") fmt::print("{} the job has ended\n", time_text());
  return result.alarmed ? 1 : 0;
}

}  // namespace

void add_watch(CLI::App& app) {
  auto given = std::make_shared<WatchArguments>();
  CLI::App* command =
      add_command(app, "watch", "Verdicts on a running job: who is late, who is stuck in what",
                  "medley watch\n  medley watch out/run7 --stuck 120 --until-problem --kinds gone,stuck; "
                  "[ $? -ne 1 ] || scancel $SLURM_JOB_ID",
                  [given] { return run_watch(*given); });
  command->add_option(
      "DIR", given->request.path,
      "The job's recorders: a flight recorder's folder, or the one MEDLEY_TRACE names; of "
      "several hosts, a folder that they share. Default: the one job of this user that runs on this host");
  command->add_option("--every", given->request.every_s, "Seconds between two looks")
      ->capture_default_str()
      ->check(between(0.05, 3600.0));
  command->add_option("--stuck", given->request.options.stuck_s, "Seconds after which an operation counts as stuck")
      ->capture_default_str()
      ->check(positive());
  command
      ->add_option("--window", given->request.options.window_s, "Seconds that are judged against the time before them")
      ->capture_default_str()
      ->check(positive());
  command->add_option("--for", given->request.for_s, "Stop after so many seconds; default: when the job ends")
      ->check(positive());
  command->add_flag("--once", given->request.once, "Look once");
  command->add_flag("--until-problem", given->request.until_problem,
                    "Stop, with 1, at the first rank that is gone, stopped, stuck or late");
  command->add_option("--kinds", given->kinds,
                      "The verdicts that count as a problem, such as gone,stuck; default: all");
  command
      ->add_option("--prometheus", given->request.prometheus, "Serve the verdicts as metrics on this port of the host")
      ->check(whole(1, 65535));
  add_json(*command, given->json, "every look (on stdout a line each)");
}

}  // namespace medley::cli
