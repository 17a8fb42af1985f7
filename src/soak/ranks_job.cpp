#include "soak/ranks_job.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <medley/error.hpp>

#include "bootstrap/launch.hpp"

namespace medley::soak {
namespace {

constexpr std::size_t most_output = 4000;

[[noreturn]] void be_launcher(const LaunchOptions& options, const std::string& log, const std::string& report) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  setpgid(0, 0);  // the supervising process handles the terminal's signals
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  dup2(file, 1);
  dup2(file, 2);
  setenv(report_variable, report.c_str(), 1);
  int status = 1;
  try {
    status = launch(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
  }
  fflush(nullptr);
  _exit(status);
}

}  // namespace

RanksJob::RanksJob(int ranks, const std::vector<std::string>& arguments, const std::string& backends,
                   const Report& report)
    : log_(report.path() + ".log") {
  LaunchOptions options;
  options.ranks = ranks;
  options.command = {"/proc/self/exe"};
  options.command.insert(options.command.end(), arguments.begin(), arguments.end());
  options.backends = backends;
  options.prefix = false;
  options.keep_going = true;  // this process ends them
  fflush(nullptr);
  launcher_ = fork();
  if (launcher_ < 0) throw Error(ErrorKind::system, "cannot fork a launcher of ranks");
  if (launcher_ == 0) be_launcher(options, log_, report.path());
}

std::optional<int> RanksJob::ended() {
  int status = 0;
  if (!status_ && waitpid(launcher_, &status, WNOHANG) == launcher_) {
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return status_;
}

std::string RanksJob::output() const {
  std::ifstream file(log_, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  return text.size() > most_output ? "…" + text.substr(text.size() - most_output) : text;
}

RanksJob::~RanksJob() {
  // The first signal makes the launcher end the ranks, the second kills them; if the launcher itself must be
  // killed, its supervisor process kills them.
  for (int i = 0; i < 40 && !ended(); ++i) {
    if (i == 0 || i == 4) kill(launcher_, SIGTERM);
    if (i == 30) kill(launcher_, SIGKILL);
    usleep(i < 4 ? 50'000 : 200'000);
  }
  unlink(log_.c_str());
}

}  // namespace medley::soak
