// What counts as one host, and how /dev/shm is used. Needs the right to make namespaces (root); skipped otherwise.
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include <filesystem>

#include "backends/shm/job.hpp"

namespace medley::test {
namespace {

/// Gives this process its own /dev/shm; false where that is not allowed.
bool own_shm(const char* size) {
  return unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", "/dev/shm", "tmpfs", 0, size) == 0;
}

constexpr int may_not = 77;

/// Runs a part of a test in a process with its own /dev/shm; false where that is not allowed.
bool with_own_shm(const char* size, const std::function<void()>& part) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (!own_shm(size)) _exit(may_not);
    part();
    std::fflush(nullptr);
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == may_not) return false;
  EXPECT_EQ(status, 0);
  return true;
}

std::size_t used_bytes() {
  struct statvfs room {};
  statvfs("/dev/shm", &room);
  return (room.f_blocks - room.f_bfree) * room.f_frsize;
}

#define NEEDS_NAMESPACES(may) \
  if (!(may)) GTEST_SKIP() << "this user may not make namespaces"

TEST(SharedMemory, NothingIsLeftWhenAllAreKilled) {
  NEEDS_NAMESPACES(with_own_shm("size=64m", [] {
    const std::size_t before = used_bytes();
    const Shared<std::atomic<int>> turns;
    {
      Job job(3, [&](int, const Job::Start& start) {
        Context context = start();
        Comm world = context.world(), other = world.dup();
        std::vector<float> data(10000, 1.0f);
        for (;;) {
          other.all_reduce(data, max);
          ++*turns;
        }
      });
      while (*turns < 300) usleep(1000);
      EXPECT_GT(used_bytes(), before);
      for (int rank = 0; rank < 3; ++rank) kill(job.process(rank), SIGKILL);
    }
    EXPECT_EQ(used_bytes(), before);
    EXPECT_TRUE(std::filesystem::is_empty("/dev/shm"));
  }));
}

TEST(SharedMemory, TooLittleIsAnErrorOnAllRanksThatNamesTheSize) {
  NEEDS_NAMESPACES(with_own_shm("size=256k", [] {
    Job job(3, [&](int, const Job::Start& start) { start(); });
    for (int rank = 0; rank < 3; ++rank) {
      const Ending ending = job.wait(rank);
      expect_error(ending, ErrorKind::unavailable, {}, rank);
      EXPECT_NE(ending.what.find("/dev/shm is too small"), std::string::npos) << ending.what;
      EXPECT_NE(ending.what.find("MiB are needed"), std::string::npos) << ending.what;
    }
  }));
}

TEST(SharedMemory, TooLittleForOneMoreCommLeavesTheOthersAlone) {
  NEEDS_NAMESPACES(with_own_shm("size=4m", [] {
    Job job(2, [&](int rank, const Job::Start& start) {
      Context context = start();
      Comm world = context.world();
      std::vector<float> medium(1024, 1.0f);
      world.all_reduce(medium, sum);  // makes the comm populate the memory it had only reserved
      try {
        world.dup();
        ADD_FAILURE() << "two comms of 2 ranks found room in 4 MiB";
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::unavailable) << error.what();
      }
      float value[1] = {1.0f};
      world.all_reduce(value, sum);
      EXPECT_EQ(value[0], 2.0f) << rank;
    });
    for (int rank : {0, 1}) expect_success(job.wait(rank), rank);
  }));
}

/// Rank 1 moves to another namespace before it makes its context: the world comm must be refused on both, with the
/// reason.
void expect_another_host(const std::function<void()>& move) {
  Job::Options options;
  options.before_context = [&](int rank) {
    if (rank == 1) move();
  };
  Job job(
      2, [&](int, const Job::Start& start) { start(); }, options);
  for (int rank : {1, 0}) {
    const Ending ending = job.wait(rank);
    if (WIFEXITED(ending.status) && WEXITSTATUS(ending.status) == may_not) {
      GTEST_SKIP() << "this user may not make namespaces";
    }
    expect_error(ending, ErrorKind::unavailable, {}, rank);
    EXPECT_NE(ending.what.find("shm serves one host, and ranks 0 and 1 are on different ones"), std::string::npos)
        << ending.what;
  }
}

TEST(Hosts, AnotherMountOfSharedMemoryIsAnotherHost) {
  expect_another_host([] {
    if (!own_shm("size=64m")) _exit(may_not);
  });
}

TEST(Hosts, AnotherPidNamespaceIsAnotherHost) {
  expect_another_host([] {
    if (unshare(CLONE_NEWPID) != 0) _exit(may_not);
    const pid_t inner = fork();  // the first process in the namespace
    if (inner == 0) return;
    int status = 0;
    waitpid(inner, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  });
}

}  // namespace
}  // namespace medley::test
