#include "bootstrap/launch_mpi.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <medley/error.hpp>

#include "bootstrap/environment.hpp"
#include "bootstrap/launch_job.hpp"
#include "bootstrap/socket.hpp"

namespace medley {
namespace {

std::string output_of(const std::vector<std::string>& command) {
  Pipe pipe = make_pipe();
  Spawn what;
  what.program = find_program(command[0]);
  what.arguments = command;
  what.environment = current_environment();
  what.out = what.err = pipe.write.fd();
  const pid_t pid = spawn(what);
  pipe.write.reset();
  std::string text;
  std::array<char, 4096> chunk;
  for (ssize_t got = 0; (got = read(pipe.read.fd(), chunk.data(), chunk.size())) != 0;) {
    if (got > 0) text.append(chunk.data(), static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR) break;
  }
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return text;
}

// Space for two descriptors, aligned as a control message must be.
union Control {
  cmsghdr header;
  char bytes[CMSG_SPACE(2 * sizeof(int))];
};

}  // namespace

bool lists_mpi(const std::string& backends) {
  std::string names = "," + backends + ",";
  std::replace_if(
      names.begin(), names.end(), [](char c) { return c == '+' || c == '|'; }, ',');  // of two libraries
  return names.find(",mpi,") != std::string::npos;
}

namespace {

bool installed(const std::string& program) {
  try {
    return !find_program(program).empty();
  } catch (const Error&) {
    return false;
  }
}

/// MEDLEY_MPIRUN, or the first one installed; Debian names each MPI's mpirun differently.
std::string find_mpirun() {
  const char* named = std::getenv("MEDLEY_MPIRUN");
  if (named && *named) return named;
  for (const char* name : {"mpirun", "mpiexec", "mpirun.openmpi", "mpirun.mpich", "mpiexec.hydra"}) {
    if (installed(name)) return name;
  }
  throw Error(ErrorKind::invalid,
              "mpi is among the backends but no mpirun is installed; install Open MPI or MPICH, or name one "
              "by MEDLEY_MPIRUN");
}

}  // namespace

std::vector<std::string> mpirun_command(int ranks, bool bind) {
  const std::string mpirun = find_mpirun();
  const std::string version = output_of({mpirun, "--version"});
  const std::string count = std::to_string(ranks);
  if (version.find("Open MPI") == version.npos && version.find("OpenRTE") == version.npos)
    return {mpirun, "-n", count, "-disable-auto-cleanup", "-bind-to", bind ? "core" : "none"};
  std::vector<std::string> words = {
      mpirun, "-n", count, "--oversubscribe", "--allow-run-as-root", "--bind-to", bind ? "core" : "none"};
  for (const char* word : {"--mca", "orte_abort_on_non_zero_status", "0", "--enable-recovery"})
    words.emplace_back(word);
  // Open MPI 4 refuses to start even local ranks without ssh or rsh.
  if (!installed("ssh") && !installed("rsh")) {
    for (const char* word : {"--mca", "plm", "isolated"}) words.emplace_back(word);
  }
  return words;
}

void send_descriptors(int socket, int first, int second) {
  Control control{};
  char byte = 0;
  iovec data{&byte, 1};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(2 * sizeof(int));
  const std::array<int, 2> both{first, second};
  std::memcpy(CMSG_DATA(header), both.data(), sizeof both);
  while (sendmsg(socket, &message, MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

bool receive_descriptors(int socket, int& first, int& second) {
  Control control{};
  char byte = 0;
  iovec data{&byte, 1};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  ssize_t got = 0;
  while ((got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {
  }
  const cmsghdr* header = got == 1 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (!header || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(2 * sizeof(int))) return false;
  std::array<int, 2> both{};
  std::memcpy(both.data(), CMSG_DATA(header), sizeof both);
  first = both[0];
  second = both[1];
  return true;
}

int report_to_launcher(const std::string& door, const std::vector<std::string>& command) {
  const auto place = find_place(process_environment());
  if (!place || place->source == Place::Source::medley) {
    throw Error(ErrorKind::invalid,
                "--report-to is how medley run starts ranks through mpirun; it is not for the user");
  }
  // The launcher signals the whole group; the signals are for the program, and this process only waits for it.
  setpgid(0, 0);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);

  const Deadline deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  std::string why = "another user's socket is in its place";
  const Descriptor line = connect_to(door, 0, deadline, why);
  if (!line || !same_user(line)) throw Error(ErrorKind::unavailable, fmt::format("medley run is gone: {}", why));
  const std::array<std::int32_t, 2> words{place->rank, getpgrp()};
  Spawn what;
  if (!write_all(line, words.data(), sizeof words, deadline) || !wait_readable(line, deadline) ||
      !receive_descriptors(line.fd(), what.out, what.err)) {
    throw Error(ErrorKind::unavailable, "medley run did not hand over this rank's output");
  }
  what.program = find_program(command.at(0));
  what.arguments = command;
  what.environment = current_environment();
  what.own_group = false;
  if (place->local_rank >= 0) what.environment["MEDLEY_LOCAL_RANK"] = std::to_string(place->local_rank);
  const pid_t pid = spawn(what);
  close(what.out);  // only the program holds it, so that its exit closes the stream
  close(what.err);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  const std::int32_t report = status;
  write_all(line, &report, sizeof report, Deadline::max());
  return 0;
}

}  // namespace medley
