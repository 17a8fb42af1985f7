#include "bootstrap/launch_supervisor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <medley/error.hpp>

namespace medley {
namespace {

// More process groups than one host can run ranks.
constexpr int most_groups = 4096;

// Runs between fork and _exit in a program with threads: system calls only.
[[noreturn]] void keep(int line) {
  setsid();  // away from the terminal's signals
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  prctl(PR_SET_NAME, "medley-supervisor");
  dup2(line, 0);
  close_range(1, ~0U, 0);  // must not keep the launcher's pipes open
  static pid_t groups[most_groups];
  int count = 0;
  for (;;) {
    pid_t group = 0;
    const ssize_t got = read(0, &group, sizeof group);  // writes of 4 bytes to a pipe are atomic
    if (got < 0 && errno == EINTR) continue;
    if (got == sizeof group && group == 0) _exit(0);
    if (got == sizeof group) {
      if (count < most_groups) groups[count++] = group;
      continue;
    }
    for (int i = 0; i < count; ++i) kill(-groups[i], SIGKILL);
    _exit(0);
  }
}

}  // namespace

Supervisor::Supervisor() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(ErrorKind::system, fmt::format("medley run cannot make a pipe: {}", std::strerror(errno)));
  }
  const Descriptor listening(ends[0]);
  line_ = Descriptor(ends[1]);
  pid_ = fork();
  if (pid_ < 0) throw Error(ErrorKind::system, fmt::format("medley run cannot fork: {}", std::strerror(errno)));
  if (pid_ == 0) {
    close(ends[1]);
    keep(ends[0]);
  }
}

Supervisor::~Supervisor() {
  guard(0);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Supervisor::guard(pid_t group) {
  while (write(line_.fd(), &group, sizeof group) < 0 && errno == EINTR) {
  }
}

}  // namespace medley
