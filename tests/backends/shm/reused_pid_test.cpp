// Direct reads address a process by its id. When a peer has died and its id is reused, reading is an error: no data of
// the other process comes through.
#include <gtest/gtest.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "backends/shm/host_peers.hpp"
#include "harness/ranks.hpp"

namespace medley::shm {
namespace {

using namespace std::chrono_literals;

constexpr int of_neighbour = 1, of_test = 2;
int told = of_test;  // at the same address in this process and in its forks

BackendParams params(int rank, const test::ForkedStore& store) {
  BackendParams s;
  s.rank = rank;
  s.size = 2;
  s.hosts = {"here", "here"};
  s.cores = 2;
  s.store = store.connect(rank, 2);
  s.deadline = deadline_after(60s);
  return s;
}

/// A process that only waits to be killed.
[[noreturn]] void wait_for_end() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (;;) pause();
}

/// A child with exactly this process id, or -1 with errno. Needs root or CAP_CHECKPOINT_RESTORE.
pid_t fork_as(pid_t number) {
  clone_args arguments{};
  arguments.exit_signal = SIGCHLD;
  arguments.set_tid = reinterpret_cast<std::uint64_t>(&number);
  arguments.set_tid_size = 1;
  const auto child = static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof arguments));
  if (child == 0) wait_for_end();
  return child;
}

void end(pid_t process) {
  kill(process, SIGKILL);
  waitpid(process, nullptr, 0);
}

TEST(ReusedPid, OfADeadNeighbourIsNotReadFrom) {
  test::ForkedStore store;
  const test::Shared<std::atomic<bool>> ready;
  const pid_t neighbour = fork();
  if (neighbour == 0) {
    told = of_neighbour;
    const HostPeers own(params(1, store));
    *ready = true;
    wait_for_end();
  }
  store.open();
  const HostPeers own(params(0, store));
  while (!*ready) std::this_thread::yield();
  if (!own.direct_reads()) {
    end(neighbour);
    GTEST_SKIP() << "process_vm_readv does not work here, so nothing is read by process number";
  }
  const auto address = reinterpret_cast<std::uint64_t>(&told);
  int got = 0;
  own.read(&got, 1, address, sizeof got, 1);
  EXPECT_EQ(got, of_neighbour);

  end(neighbour);
  const pid_t another = fork_as(neighbour);
  if (another < 0) GTEST_SKIP() << "a process with a chosen number cannot be made here: " << std::strerror(errno);
  ASSERT_EQ(another, neighbour);
  std::this_thread::sleep_for(2ms);  // within one of its death the id is assumed to be still its own (HostPeers::read)
  got = 0;
  try {
    own.read(&got, 1, address, sizeof got, 1);
    ADD_FAILURE() << "no error came; what was read is " << (got == of_test ? "another process's" : "its own");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::rank_lost) << error.what();
    EXPECT_EQ(error.context().ranks, std::vector<int>{1});
  }
  EXPECT_EQ(got, 0);
  end(another);
}

}  // namespace
}  // namespace medley::shm
