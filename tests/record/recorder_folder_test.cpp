// Where the flight recorder may write: a folder private to this user, and never through a link planted in its place.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <medley/medley.hpp>

namespace medley {
namespace {

namespace fs = std::filesystem;

class RecorderFolder : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder_ / "elsewhere");
    setenv("TMPDIR", folder_.c_str(), 1);
    unsetenv("MEDLEY_FLIGHT");
    unsetenv("MEDLEY_TRACE");
  }
  void TearDown() override { fs::remove_all(folder_); }
  static void run_and_fail() {
    Context context(ContextOptions{.backends = {"shm"}});
    Comm world = context.world();
    float x = 1;
    EXPECT_THROW(world.recv(std::span(&x, 1), 0, {.deadline = std::chrono::milliseconds(1)}), Error);  // keeps the ring
  }
  fs::path ring() const { return folder_ / ("medley-" + std::to_string(getuid())); }
  const fs::path folder_ = fs::path(testing::TempDir()) / ("recorder-" + std::to_string(getpid()));
};

TEST_F(RecorderFolder, is_made_for_this_user_alone) {
  run_and_fail();
  ASSERT_TRUE(fs::is_directory(ring()));
  EXPECT_EQ(fs::status(ring()).permissions() & fs::perms::all, fs::perms::owner_all);
  EXPECT_FALSE(fs::is_empty(ring()));
}

TEST_F(RecorderFolder, a_link_in_its_place_is_not_followed) {
  fs::create_directory_symlink(folder_ / "elsewhere", ring());
  run_and_fail();
  EXPECT_TRUE(fs::is_empty(folder_ / "elsewhere"));
}

}  // namespace
}  // namespace medley
