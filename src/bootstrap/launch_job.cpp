#include "bootstrap/launch_job.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/ranks_text.hpp"
#include "bootstrap/binding.hpp"
#include "bootstrap/proof.hpp"

namespace medley {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Between SIGTERM and SIGKILL, after the grace period.
constexpr milliseconds last_words{2000};
// For output still in the pipes when every rank has ended.
constexpr milliseconds output_limit{1000};
// An mpirun that could not start a rank may print that and wait for ever.
constexpr std::chrono::seconds start_limit{120};

StoreServerOptions store_options(const std::string& token, int size) {
  StoreServerOptions options;
  options.token = token;
  options.size = size;
  return options;
}

std::string in_words(int status) {
  if (WIFEXITED(status)) return fmt::format("exited with status {}", WEXITSTATUS(status));
  const int number = WTERMSIG(status);
  const char* name = sigabbrev_np(number);
  return fmt::format("was ended by signal {} ({}{}){}", number, name ? "SIG" : "", name ? name : "unknown",
                     WCOREDUMP(status) ? " and dumped core" : "");
}

template <typename... Arguments>
void say(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  fmt::print(stderr, "medley run: {}\n", fmt::format(text, std::forward<Arguments>(arguments)...));
}

}  // namespace

Job::Job(const LaunchOptions& options)
    : options_(options),
      token_(random_token()),
      store_(store_options(token_, options.ranks)),
      ranks_(static_cast<std::size_t>(options.ranks)),
      cores_(options.bind == Bind::core ? cores_for(options.ranks) : std::vector<std::string>()) {}

Job::~Job() { clean_up(); }

int Job::run() {
  sigset_t wanted;
  pthread_sigmask(SIG_SETMASK, nullptr, &wanted);  // those that launch() has blocked
  signals_ = Descriptor(signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  start();
  if (mpirun_ > 0) all_here_by_ = steady_clock::now() + start_limit;
  while (anyone_running()) {
    act_on_time();
    auto next = terminate_ ? terminate_ : kill_;
    if (all_here_by_ && (!next || *all_here_by_ < *next)) next = all_here_by_;
    wait_for_events(next);
  }
  clean_up();
  return exit_status_;
}

bool Job::anyone_running() const {
  if (mpirun_ > 0) return true;
  return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.running; });
}

void Job::wait_for_events(std::optional<Deadline> until) {
  std::vector<pollfd> entries{{signals_.fd(), POLLIN, 0}, {door_.fd(), POLLIN, 0}};
  for (const auto& rank : ranks_) entries.push_back({rank.line.fd(), POLLIN, 0});
  for (const auto& stream : streams_) entries.push_back({stream->from.fd(), POLLIN, 0});
  int timeout = -1;
  if (until) {
    const auto left = std::chrono::ceil<milliseconds>(*until - steady_clock::now()).count();
    timeout = static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
  }
  if (poll(entries.data(), entries.size(), timeout) <= 0) return;
  // Output first: a rank's last output belongs before the line that reports its end.
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    if (entries[2 + ranks_.size() + i].revents) carry(*streams_[i]);
  }
  std::erase_if(streams_, [](const auto& stream) { return !stream->from; });
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (entries[2 + rank].revents) hear_rank(static_cast<int>(rank));
  }
  if (entries[1].revents) admit_rank();
  if (entries[0].revents) take_signal();
}

void Job::carry(Stream& stream) {
  static thread_local std::array<char, 65536> chunk;
  const ssize_t got = read(stream.from.fd(), chunk.data(), chunk.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  const bool read_on =
      got > 0 ? stream.lines.feed({chunk.data(), static_cast<std::size_t>(got)}) : (stream.lines.finish(), false);
  // When nobody reads our output any more, the ranks see it as usual: a write to a closed pipe.
  if (!read_on) stream.from.reset();
}

void Job::take_signal() {
  signalfd_siginfo info{};
  while (read(signals_.fd(), &info, sizeof info) == sizeof info) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGCHLD) {
      reap();
      continue;
    }
    const bool asks_to_end = number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
    if (asks_to_end && ++interrupts_ == 1) say("{}, passed on to every rank; once more kills them", strsignal(number));
    if (asks_to_end && interrupts_ > 1) {
      signal_ranks(SIGKILL);
      kill_ = steady_clock::now() + last_words;  // mpirun may need more than one
    } else {
      signal_ranks(number);
    }
    if (asks_to_end && mpirun_ > 0 && !everyone_came()) {  // missing ranks do not get it, so they cannot end mpirun
      kill(-mpirun_, SIGTERM);
      if (!kill_) kill_ = steady_clock::now() + last_words;
    }
    if (number == SIGTSTP) raise(SIGSTOP);
  }
}

void Job::reap() {
  siginfo_t info{};
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (mpirun_ > 0 || !ranks_[i].running || ranks_[i].group <= 0) continue;
    // The zombie stays until clean_up(): until then the kernel cannot reuse the group's number.
    info.si_pid = 0;
    if (waitid(P_PID, static_cast<id_t>(ranks_[i].group), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0) {
      continue;
    }
    const int status = info.si_code == CLD_EXITED ? W_EXITCODE(info.si_status, 0)
                                                  : info.si_status | (info.si_code == CLD_DUMPED ? WCOREFLAG : 0);
    ended(static_cast<int>(i), status);
  }
  int status = 0;
  if (mpirun_ > 0 && waitpid(mpirun_, &status, WNOHANG) == mpirun_) {
    mpirun_ = 0;
    for (auto& rank : ranks_) rank.running = false;
    if (status != 0 && exit_status_ == 0) {
      say("mpirun {}", in_words(status));
      exit_status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
  }
}

void Job::ended(int rank, int status) {
  ranks_[static_cast<std::size_t>(rank)].running = false;
  if (status == 0) return;
  const bool by_us = interrupts_ > 0 || kill_.has_value();
  if (exit_status_ == 0) exit_status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (by_us) return;
  for (int i = 0; i < 4; ++i) {  // print its last output before our message
    for (auto& stream : streams_) {
      pollfd entry{stream->from.fd(), POLLIN, 0};
      if (stream->from && poll(&entry, 1, 0) > 0) carry(*stream);
    }
  }
  say("rank {} {}", rank, in_words(status));
  if (!options_.keep_going && !terminate_ && anyone_running()) terminate_ = steady_clock::now() + options_.grace;
}

void Job::act_on_time() {
  const auto now = steady_clock::now();
  if (all_here_by_ && now >= *all_here_by_) {
    all_here_by_.reset();
    if (!everyone_came()) {
      say("mpirun has not started {} within {} s; ending the job", missing_ranks(), start_limit.count());
      if (exit_status_ == 0) exit_status_ = 1;
      terminate_ = now;
    }
  }
  if (terminate_ && now >= *terminate_) {
    say("ending {} after a grace of {:g} s", running_ranks(), static_cast<double>(options_.grace.count()) / 1000.0);
    signal_ranks(SIGTERM);
    signal_ranks(SIGCONT);  // a stopped rank receives SIGTERM only once it continues
    terminate_.reset();
    kill_ = now + last_words;
  } else if (kill_ && now >= *kill_) {
    signal_ranks(SIGKILL);
    kill_ = now + last_words;
  }
}

bool Job::everyone_came() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.group != 0; });
}

std::string Job::missing_ranks() const {
  std::vector<int> numbers;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (ranks_[i].group == 0) numbers.push_back(static_cast<int>(i));
  }
  return core::ranks_text(numbers);
}

std::string Job::running_ranks() const {
  std::vector<int> numbers;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (ranks_[i].running) numbers.push_back(static_cast<int>(i));
  }
  return core::ranks_text(numbers);
}

void Job::signal_ranks(int signal) {
  for (const auto& rank : ranks_) {
    if (rank.running && rank.group > 0) kill(-rank.group, signal);
  }
  // mpirun ends with its ranks; on SIGTERM it also removes its files. It is killed only when that did not help.
  if (mpirun_ > 0 && signal == SIGKILL) kill(-mpirun_, kills_++ == 0 ? SIGTERM : SIGKILL);
}

// Remaining output, processes that the ranks left behind, zombies.
void Job::clean_up() {
  const Deadline limit = steady_clock::now() + output_limit;
  while (!streams_.empty() && steady_clock::now() < limit) wait_for_events(limit);
  for (auto& rank : ranks_) {
    if (rank.group > 0) kill(-rank.group, SIGKILL);
    if (rank.group > 0 && !door_)
      waitpid(rank.group, nullptr, 0);  // ranks that report at the door are mpirun's children
    rank.group = 0;
  }
  if (mpirun_ > 0) {
    kill(-mpirun_, SIGKILL);
    waitpid(mpirun_, nullptr, 0);
    mpirun_ = 0;
  }
  // A process that still holds a stream has left its group on purpose; its output so far still counts.
  for (auto& stream : streams_) {
    pollfd entry{stream->from.fd(), POLLIN, 0};
    while (stream->from && poll(&entry, 1, 0) > 0) carry(*stream);
    stream->lines.finish();
  }
  streams_.clear();
}

}  // namespace medley
