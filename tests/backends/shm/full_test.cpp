// A full /dev/shm: a clear error, and never a SIGBUS when the memory is used. Runs in its own mount namespace, with 4
// MiB of /dev/shm.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <medley/error.hpp>

#include "backends/shm/segment.hpp"

namespace medley::shm {
namespace {

constexpr std::size_t mebibyte = 1 << 20;
constexpr int right = 0, wrong = 1, not_allowed = 77;

/// The mounts belong to this process and end with it.
bool make_shm_small() {
  return unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=4m") == 0;
}

/// Runs `body` in a child with a small /dev/shm; false where that is not allowed. Checks the body's result and any
/// signal.
bool with_small_shm(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    if (!make_shm_small()) _exit(not_allowed);
    _exit(body() ? right : wrong);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_FALSE(WIFSIGNALED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_NE(WEXITSTATUS(status), wrong) << "its error output says why";
  return !(WIFEXITED(status) && WEXITSTATUS(status) == not_allowed);
}

/// Whether this throws that /dev/shm is too small, with a sentence that contains `part`.
bool is_refused(const std::function<void()>& what, const char* part) {
  try {
    what();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::unavailable && std::strstr(error.what(), part)) return true;
    std::fprintf(stderr, "another error came: %s\n", error.what());
    return false;
  }
  std::fprintf(stderr, "no error came\n");
  return false;
}

void fill(const Segment& segment, std::size_t bytes) { std::memset(segment.data(), 1, bytes); }

constexpr const char* skipped = "this process may not make a mount namespace, so /dev/shm cannot be made small";

TEST(FullShm, IsAnErrorWhereMemoryIsReservedAtOnce) {
  const bool allowed = with_small_shm([] {  // as on kernels before 5.14
    const Segment first = Segment::make(3 * mebibyte, "a test", true);
    const bool refused = is_refused([] { fill(Segment::make(3 * mebibyte, "a test", true), 3 * mebibyte); },
                                    "/dev/shm is too small for a test: 3.0 MiB are needed and 1.0 MiB are free");
    fill(first, 3 * mebibyte);  // SIGBUS, if another had taken it
    return refused;
  });
  if (!allowed) GTEST_SKIP() << skipped;
}

/// Also where nothing was free from the start: parts of a segment are populated when a comm first needs them.
TEST(FullShm, IsAnErrorWhereMemoryIsTakenInParts) {
  const bool allowed = with_small_shm([] {
    const Segment first = Segment::make(3 * mebibyte, "a test");
    first.populate(0, mebibyte);
    const bool refused = is_refused(
        [&] {
          const Segment second = Segment::make(3 * mebibyte, "a test");  // refused here before Linux 5.14
          second.populate(0, 2 * mebibyte);
          second.populate(2 * mebibyte, mebibyte);
          first.populate(mebibyte, 2 * mebibyte);
        },
        "/dev/shm is ");
    fill(first, mebibyte);
    return refused;
  });
  if (!allowed) GTEST_SKIP() << skipped;
}

}  // namespace
}  // namespace medley::shm
