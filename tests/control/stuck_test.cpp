// A rank that is stuck inside a library while it holds the engine's lock still answers the diagnosis of others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "harness/ranks.hpp"

namespace medley {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class Stuck : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream made(file_);
    setenv("STUCK_WHILE", file_.c_str(), 1);
  }
  void TearDown() override { unlink(file_.c_str()); }
  const std::string file_ = testing::TempDir() + "stuck-" + std::to_string(getpid());
};

void expect_diagnosis(const std::string& file, bool async, const char* shown) {
  test::run_processes(
      2,
      [&](Context& context) {
        Comm world = context.world();
        float x = 1;
        world.all_reduce(std::span(&x, 1), sum);
        try {
          if (world.rank() == 1) {
            if (async) world.barrier({.async = true}).wait();  // to avoid the inline path
            world.send(std::span(&x, 1), 0, {.async = async, .deadline = 20s, .tag = 77}).wait();
            // The first may find data that rank 0 sent before it gave up
            for (;;) world.all_reduce(std::span(&x, 1), sum);
          } else {
            if (async) world.barrier();
            world.all_reduce(std::span(&x, 1), sum, {.deadline = 2500ms});
          }
          ADD_FAILURE() << "nobody was late on rank " << world.rank();
        } catch (const Error& error) {
          if (world.rank() == 0) {
            EXPECT_EQ(error.kind(), ErrorKind::timeout);
            EXPECT_THAT(error.what(), HasSubstr(shown));
            EXPECT_THAT(error.what(), HasSubstr("inside a library call, or away from Medley"));
            unlink(file.c_str());
          }
        }
      },
      [](ContextOptions& options) { options.backends = {"stuck"}; });
}

TEST_F(Stuck, in_a_blocking_call_it_answers) {
  expect_diagnosis(file_, false, "rank 1: completed #1, issued #1; send #1 with rank 0 over stuck running");
}

TEST_F(Stuck, in_an_async_call_it_answers) { expect_diagnosis(file_, true, "send #1 with rank 0 over stuck"); }

}  // namespace
}  // namespace medley
