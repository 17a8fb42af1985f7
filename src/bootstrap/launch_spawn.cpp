#include "bootstrap/launch_spawn.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <medley/error.hpp>
#include <sstream>

#include "bootstrap/binding.hpp"

extern char** environ;

namespace medley {
namespace {

bool is_file(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

[[noreturn]] void cannot_run(const std::string& program, int error) {
  std::string why = std::strerror(error);
  if (error == ENOEXEC) why = "it is neither a binary for this machine nor a script with a #! line";
  if (error == ENOENT) why = "the interpreter it names is not there";
  if (error == EACCES) why = "permission denied; is it executable?";
  throw Error(ErrorKind::invalid, fmt::format("cannot run {}: {}", program, why));
}

struct Lines {
  int go, report;  ///< the parent's signal to start; our report that exec failed
};

// Runs in the forked child of a program with threads: system calls only, no allocation.
[[noreturn]] void become(const Spawn& what, char* const* arguments, char* const* environment, pid_t parent,
                         Lines lines) {
  if (what.own_group) setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // the parent died before the line above
  char byte = 0;
  while (read(lines.go, &byte, 1) < 0 && errno == EINTR) {
  }
  if (!what.cores.empty()) run_on(what.cores);  // refused: it runs unbound
  // Targets may stand among the sources, so sources move out of the way first.
  const int in = fcntl(what.in, F_DUPFD_CLOEXEC, 3), out = fcntl(what.out, F_DUPFD_CLOEXEC, 3),
            err = fcntl(what.err, F_DUPFD_CLOEXEC, 3);
  if (in >= 0 && out >= 0 && err >= 0 && dup2(in, 0) == 0 && dup2(out, 1) == 1 && dup2(err, 2) == 2) {
    signal(SIGPIPE, SIG_DFL);  // the launcher ignores it for itself
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execve(what.program.c_str(), arguments, environment);
  }
  const int error = errno;
  if (write(lines.report, &error, sizeof error) < 0) _exit(126);
  _exit(127);
}

}  // namespace

std::string find_program(const std::string& command) {
  if (command.empty()) throw Error(ErrorKind::invalid, "no program to run was given");
  if (command.find('/') != command.npos) {
    if (!is_file(command)) throw Error(ErrorKind::invalid, fmt::format("program {} not found", command));
    return command;
  }
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "/usr/local/bin:/usr/bin:/bin");
  std::string not_executable;
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + command;
    if (!is_file(candidate)) continue;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    not_executable = candidate;
  }
  if (!not_executable.empty()) return not_executable;  // exec will report the reason
  throw Error(ErrorKind::invalid,
              fmt::format("program {} not found along PATH{}", command,
                          is_file("./" + command) ? fmt::format("; did you mean ./{}?", command) : ""));
}

pid_t spawn(const Spawn& what) {
  std::vector<char*> arguments, environment;
  for (const auto& argument : what.arguments) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  std::vector<std::string> assignments;
  assignments.reserve(what.environment.size());
  for (const auto& [name, value] : what.environment) assignments.push_back(name + "=" + value);
  for (const auto& assignment : assignments) environment.push_back(const_cast<char*>(assignment.c_str()));
  environment.push_back(nullptr);

  Pipe report = make_pipe(), go = make_pipe();
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw Error(ErrorKind::system, fmt::format("cannot start another process: {}", std::strerror(errno)));
  if (pid == 0) become(what, arguments.data(), environment.data(), parent, {go.read.fd(), report.write.fd()});
  if (what.own_group) setpgid(pid, pid);  // both sides do it, so that the group exists whichever runs first
  report.write.reset();
  if (what.prepared) what.prepared(pid);
  (void)!write(go.write.fd(), "", 1);
  int error = 0;
  ssize_t got = 0;
  while ((got = read(report.read.fd(), &error, sizeof error)) < 0 && errno == EINTR) {
  }
  if (got == 0) return pid;
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  cannot_run(what.program, error);
}

std::map<std::string, std::string> current_environment() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry; ++entry) {
    const char* equals = std::strchr(*entry, '=');
    if (equals) variables.emplace(std::string(*entry, static_cast<std::size_t>(equals - *entry)), equals + 1);
  }
  return variables;
}

Pipe make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(
        ErrorKind::system,
        fmt::format("cannot make a pipe: {}; is the limit of open files (ulimit -n) too low?", std::strerror(errno)));
  }
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

}  // namespace medley
