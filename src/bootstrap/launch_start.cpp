// How the launcher starts its ranks: directly, or through mpirun.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <medley/error.hpp>

#include "bootstrap/host.hpp"
#include "bootstrap/launch_job.hpp"
#include "bootstrap/launch_mpi.hpp"
#include "bootstrap/proof.hpp"
#include "bootstrap/socket.hpp"

namespace medley {
namespace {

// Open MPI's mpirun prints an error and then waits for ever when it has no descriptor for a rank's pipes. It opens 24
// plus 2 per rank, some more while it starts them; MPICH's proxy 9 plus 4; this launcher 11 plus 3.
rlim_t descriptors_for(int ranks) { return 40 + 5 * static_cast<rlim_t>(ranks); }

void make_room_for_mpirun(int ranks) {
  rlimit limit{};
  const rlim_t needed = descriptors_for(ranks);
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return;
  if (limit.rlim_max < needed) {
    throw Error(ErrorKind::invalid,
                fmt::format("the limit of open files is {}, and mpirun needs {} for {} rank{}; raise it: ulimit -n {}",
                            limit.rlim_max, needed, ranks, ranks == 1 ? "" : "s", std::max<rlim_t>(needed, 1024)));
  }
  limit.rlim_cur = needed;
  setrlimit(RLIMIT_NOFILE, &limit);
}

/// mpirun binds to any core of the machine, also to those that this process may not use.
bool mpirun_may_bind() {
  const std::string mask = core_mask();
  return std::count(mask.begin(), mask.end(), '1') >= sysconf(_SC_NPROCESSORS_ONLN);
}

}  // namespace

void Job::start() {
  if (lists_mpi(options_.backends)) return start_mpirun();
  for (int rank = 0; rank < options_.ranks; ++rank) start_rank(rank);
}

// The environment of every rank, however it is started. The launcher serves the store itself: it holds the port from
// the moment it chooses it, and losing rank 0 does not lose the store.
std::map<std::string, std::string> Job::rank_environment() const {
  auto variables = current_environment();
  // Set by an enclosing job.
  for (const char* name :
       {"MEDLEY_RANK", "MEDLEY_LOCAL_RANK", "MEDLEY_WORLD_SIZE", "RANK", "LOCAL_RANK", "WORLD_SIZE", "MEDLEY_CORES"}) {
    variables.erase(name);
  }
  variables["MEDLEY_STORE"] = fmt::format("127.0.0.1:{}", store_.port());
  variables["MEDLEY_TOKEN"] = token_;
  variables["MEDLEY_STORE_SERVED"] = "1";
  if (!cores_.empty()) variables["MEDLEY_CORES"] = core_mask();  // for the threads that Medley starts in a rank
  if (!options_.backends.empty()) variables["MEDLEY_BACKENDS"] = options_.backends;
  if (options_.prefix) variables.emplace("PYTHONUNBUFFERED", "1");  // output should appear while the job runs
  return variables;
}

Job::Pipes Job::make_streams(int rank) {
  Pipe out = make_pipe(), err = make_pipe();
  const std::string prefix = fmt::format("[{}] ", rank);
  streams_.push_back(std::make_unique<Stream>(Stream{std::move(out.read), LineCarrier(prefix, 1)}));
  streams_.push_back(std::make_unique<Stream>(Stream{std::move(err.read), LineCarrier(prefix, 2)}));
  return {std::move(out.write), std::move(err.write)};
}

void Job::start_rank(int rank) {
  Spawn what;
  what.program = find_program(options_.command.at(0));
  what.arguments = options_.command;
  what.environment = rank_environment();
  what.environment["MEDLEY_RANK"] = what.environment["MEDLEY_LOCAL_RANK"] = std::to_string(rank);
  what.environment["MEDLEY_WORLD_SIZE"] = std::to_string(options_.ranks);
  // Rank 0 gets standard input, but not a terminal: a rank is not in the foreground process group and would be
  // stopped.
  const Descriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  what.in = rank == 0 && !isatty(0) ? 0 : nothing.fd();
  Pipes pipes;
  if (options_.prefix) {
    pipes = make_streams(rank);
    what.out = pipes.out.fd();
    what.err = pipes.err.fd();
  }
  if (!cores_.empty()) what.cores = cores_[static_cast<std::size_t>(rank)];
  Rank& started = ranks_[static_cast<std::size_t>(rank)];
  what.prepared = [this](pid_t group) { supervisor_.guard(group); };
  started.group = spawn(what);
}

void Job::start_mpirun() {
  make_room_for_mpirun(options_.ranks);
  door_name_ = "@medley-run/" + random_token();
  door_ = listen_on(door_name_, 0, 1);
  find_program(options_.command.at(0));  // mpirun's own error message would fill a page
  Spawn what;
  if (!mpirun_may_bind()) cores_.clear();
  what.arguments = mpirun_command(options_.ranks, !cores_.empty());
  what.program = find_program(what.arguments[0]);
  for (const auto& word :
       {std::string("/proc/self/exe"), std::string("run"), "--report-to=" + door_name_, std::string("--")}) {
    what.arguments.push_back(word);
  }
  std::array<char, 4096> self{};
  if (readlink("/proc/self/exe", self.data(), self.size() - 1) > 0) *(what.arguments.end() - 4) = self.data();
  what.arguments.insert(what.arguments.end(), options_.command.begin(), options_.command.end());
  what.environment = rank_environment();
  const Descriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  what.in = isatty(0) ? nothing.fd() : 0;
  what.out = 2;  // mpirun itself prints only errors; the ranks' output comes to us
  what.prepared = [this](pid_t group) { supervisor_.guard(group); };
  mpirun_ = spawn(what);
}

// A rank under mpirun connects to the door, reports its number and its group, and gets its pipes.
void Job::admit_rank() {
  Descriptor line(accept4(door_.fd(), nullptr, nullptr, SOCK_CLOEXEC));
  std::array<std::int32_t, 2> words{};
  const Deadline soon = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  if (!line || !same_user(line) || !read_all(line, words.data(), sizeof words, soon)) return;
  const auto [number, group] = words;
  if (number < 0 || number >= options_.ranks || group <= 1) return;
  Rank& rank = ranks_[static_cast<std::size_t>(number)];
  if (rank.group != 0 || interrupts_ > 0 || kill_) return;  // too late to join a job that is ending
  rank.group = group;
  supervisor_.guard(group);
  Pipes pipes;
  if (options_.prefix) pipes = make_streams(number);
  send_descriptors(line.fd(), options_.prefix ? pipes.out.fd() : 1, options_.prefix ? pipes.err.fd() : 2);
  rank.line = std::move(line);
}

void Job::hear_rank(int number) {
  Rank& rank = ranks_[static_cast<std::size_t>(number)];
  std::int32_t status = 0;
  const Deadline soon = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  const bool heard = read_all(rank.line, &status, sizeof status, soon);
  rank.line.reset();
  if (rank.running) ended(number, heard ? status : SIGKILL);  // no report: it was killed
}

}  // namespace medley
