// medley watch: verdicts on a running job, look after look, for a person, a job script or Prometheus.
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <medley/error.hpp>
#include <optional>
#include <set>

#include "cli/command.hpp"
#include "trace/watch.hpp"

namespace medley::cli {
namespace {

struct WatchArguments {
  std::string path, json;
  trace::WatchOptions options;
  double every_s = 0.5, for_s = 0;
  int prometheus = 0;
  bool once = false, until_problem = false;
};

volatile std::sig_atomic_t watch_interrupted = 0;

/// Answers every request on a port of this host with the latest report.
class PrometheusEndpoint {
 public:
  explicit PrometheusEndpoint(int port) {
    if (port == 0) return;
    socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1;
    setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(socket_, 8) != 0)
      throw Error(ErrorKind::invalid, fmt::format("--prometheus {}: {}", port, std::strerror(errno)));
  }
  ~PrometheusEndpoint() {
    if (socket_ >= 0) close(socket_);
  }
  PrometheusEndpoint(const PrometheusEndpoint&) = delete;
  PrometheusEndpoint& operator=(const PrometheusEndpoint&) = delete;

  /// Serves whoever asks for `seconds`.
  void serve(double seconds, const std::string& text) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    for (;;) {
      const double left = std::chrono::duration<double>(end - std::chrono::steady_clock::now()).count();
      if (left <= 0 || watch_interrupted) return;
      pollfd waiting{socket_, POLLIN, 0};
      const int ready =
          poll(socket_ >= 0 ? &waiting : nullptr, socket_ >= 0 ? 1 : 0, static_cast<int>(left * 1000) + 1);
      if (ready > 0) answer(text);
    }
  }

 private:
  void answer(const std::string& text) {
    const int client = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    const timeval timeout{1, 0};
    setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
    char request[4096];
    static_cast<void>(recv(client, request, sizeof request, 0));
    const std::string reply = fmt::format(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: "
        "close\r\n\r\n{}",
        text.size(), text);
    static_cast<void>(send(client, reply.data(), reply.size(), MSG_NOSIGNAL));
    close(client);
  }
  int socket_ = -1;
};

double now_ns() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

std::vector<trace::RankNow> processes_of(const trace::Trace& t) {
  char host[64] = {};
  gethostname(host, sizeof host - 1);
  std::vector<trace::RankNow> out;
  for (const trace::RankTrace& rank : t.ranks)
    out.push_back(
        {rank.rank, rank.host == host ? trace::process_state(rank.pid) : trace::ProcessState::unknown});
  return out;
}

nlohmann::ordered_json json_of(const trace::WatchReport& report) {
  nlohmann::ordered_json verdicts = nlohmann::ordered_json::array();
  for (const trace::WatchVerdict& v : report.verdicts)
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

std::string time_text() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%H:%M:%S", std::localtime(&now));
  return text;
}

/// One look at the job; nothing while its files are being made, or once they are gone.
std::optional<trace::WatchReport> look(const WatchArguments& given, bool& all_gone) {
  try {
    trace::Trace t = trace::open_trace(given.path);
    const auto processes = processes_of(t);
    all_gone =
        !processes.empty() && std::all_of(processes.begin(), processes.end(), [](const trace::RankNow& now) {
          return now.process == trace::ProcessState::gone;
        });
    return trace::watch_report(t, processes, now_ns(), given.options);
  } catch (const Error&) {
    return std::nullopt;  // a record was being written, or the last rank removed its file
  }
}

int run_watch(const WatchArguments& given) {
  static_cast<void>(trace::open_trace(given.path));  // refuses what is no recording
  std::signal(SIGINT, [](int) { watch_interrupted = 1; });
  PrometheusEndpoint endpoint(given.prometheus);
  const auto begin = std::chrono::steady_clock::now();
  std::set<std::string> told;
  bool alarmed = false;
  int absent = 0;
  std::string metrics;
  for (;;) {
    bool all_gone = false;
    const auto report = look(given, all_gone);
    absent = report ? 0 : absent + 1;
    if (report) {
      if (given.json == "-")
        fmt::print("{}\n", json_of(*report).dump());
      else
        write_json(given.json, json_of(*report));
      metrics = trace::prometheus_text(*report);
      alarmed = report->alarming();
      std::set<std::string> now;
      for (const trace::WatchVerdict& v : report->verdicts) {
        const std::string key =
            fmt::format("{}|{}|{}|{}", v.kind, v.group, v.op, v.ranks.empty() ? -1 : v.ranks.front());
        now.insert(key);
        if (!told.contains(key) && given.json != "-")
          fmt::print("{} {:<8} {}\n", time_text(), v.kind, v.sentence);
      }
      told = std::move(now);
      if (given.once && given.json != "-" && report->verdicts.empty())
        fmt::print("{} operations of {} ranks; nothing is wrong\n", report->operations, report->ranks);
      std::fflush(stdout);
    }
    const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (given.once || watch_interrupted || (given.for_s > 0 && passed >= given.for_s)) break;
    if (alarmed && given.until_problem) break;
    if (all_gone || absent > 4) {
      if (given.json != "-") fmt::print("{} the job has ended\n", time_text());
      break;
    }
    endpoint.serve(given.every_s, metrics);
  }
  return alarmed ? 1 : 0;
}

}  // namespace

void add_watch(CLI::App& app) {
  auto given = std::make_shared<WatchArguments>();
  CLI::App* command =
      add_command(app, "watch", "Verdicts on a running job: who is late, who is stuck in what",
                  "medley watch /tmp/medley-$UID/JOB\n  medley watch out/run7 --until-problem --json "
                  "verdicts.json || scancel $SLURM_JOB_ID",
                  [given] { return run_watch(*given); });
  command
      ->add_option("DIR", given->path,
                   "The job's recorders: a flight recorder's folder, or the one MEDLEY_TRACE names; of "
                   "several hosts, a "
                   "folder that they share")
      ->required();
  command->add_option("--every", given->every_s, "Seconds between two looks")
      ->capture_default_str()
      ->check(CLI::Range(0.05, 3600.0));
  command->add_option("--stuck", given->options.stuck_s, "Seconds after which an operation counts as stuck")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--window", given->options.window_s, "Seconds that are judged, against what was before")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--for", given->for_s, "Stop after so many seconds; default: when the job ends")
      ->check(CLI::PositiveNumber);
  command->add_flag("--once", given->once, "Look once");
  command->add_flag("--until-problem", given->until_problem,
                    "Stop, with 1, at the first rank that is gone, stopped, stuck or late");
  command
      ->add_option("--prometheus", given->prometheus,
                   "Serve the verdicts as metrics on this port of the host")
      ->check(CLI::Range(1, 65535));
  command->add_option("--json", given->json, "Write every look as JSON; - for a line each on stdout");
}

}  // namespace medley::cli
