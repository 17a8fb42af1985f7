#include "bootstrap/launch.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <ctime>
#include <medley/error.hpp>

#include "bootstrap/launch_job.hpp"

namespace medley {
namespace {

// Redirects signals to the job's event loop; the destructor restores everything.
class SignalGuard {
 public:
  SignalGuard() {
    sigset_t wanted;
    sigemptyset(&wanted);
    for (int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGUSR1, SIGUSR2}) {
      struct sigaction now {};
      sigaction(number, nullptr, &now);
      if (now.sa_handler != SIG_IGN || number == SIGCHLD) sigaddset(&wanted, number);  // respect nohup
    }
    pthread_sigmask(SIG_SETMASK, &wanted, &mask_);
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &ignore, &pipe_);  // write() reports a closed output
    ignore.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &ignore, &child_);  // an ignored SIGCHLD would lose the ranks' statuses
  }
  ~SignalGuard() {
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    const timespec now{};
    while (sigtimedwait(&child, nullptr, &now) > 0) {  // ours, not the caller's
    }
    sigaction(SIGPIPE, &pipe_, nullptr);
    sigaction(SIGCHLD, &child_, nullptr);
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

 private:
  sigset_t mask_{};
  struct sigaction pipe_ {};
  struct sigaction child_ {};
};

// Pipes must not get descriptors 0, 1 or 2, which a caller may have closed.
void open_standard_streams() {
  int fd = 0;
  do {
    fd = open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= 2);
  if (fd > 2) close(fd);
}

}  // namespace

int launch(const LaunchOptions& options) {
  if (options.ranks < 1) throw Error(ErrorKind::invalid, "a job needs at least 1 rank");
  if (options.command.empty()) throw Error(ErrorKind::invalid, "no program to run was given");
  open_standard_streams();
  const SignalGuard guard;
  return Job(options).run();
}

}  // namespace medley
