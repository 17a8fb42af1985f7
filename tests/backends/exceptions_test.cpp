// Whatever a plugin throws becomes an error of the operation or the comm it was thrown in: blocking, async, and on the
// progress thread, where no caller could catch it. Other comms continue.
#include <gtest/gtest.h>

#include <thread>

#include "backends/explodes/explodes.hpp"
#include "harness/ranks.hpp"

namespace medley {
namespace {

using namespace std::chrono_literals;

struct Case {
  test::ExplodingTag where;
  const char* sentence;
};

class Exceptions : public testing::TestWithParam<std::tuple<Case, UseThread>> {};

/// Rank 0 receives and its backend throws; rank 1 sends nothing.
TEST_P(Exceptions, become_errors_that_say_what_the_library_said) {
  const auto [tried, thread] = GetParam();
  test::run_threads(
      2,
      [&](Context& context) {
        Comm world = context.world();
        Comm doomed = world.dup();
        float value = 0;
        if (world.rank() == 0) {
          try {
            Work work =
                doomed.recv(std::span(&value, 1), 1, {.backend = "explodes", .async = true, .tag = tried.where});
            work.wait();
            ADD_FAILURE() << "no error came";
          } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::system);
            EXPECT_NE(std::string(error.what()).find(tried.sentence), std::string::npos) << error.what();
            EXPECT_NE(std::string(error.what()).find("explodes"), std::string::npos) << error.what();
          }
          EXPECT_THROW(doomed.recv(std::span(&value, 1), 1, {.backend = "explodes", .tag = tried.where}), Error);
        }
        // The engine is unaffected: what is issued now starts and completes, over this backend too.
        for (int i = 0; i < 3; ++i) {
          std::vector<std::int32_t> values(1000, 1);
          Work work = world.all_reduce(values, sum, {.backend = i == 1 ? "explodes" : "shm", .async = true});
          work.wait();
          EXPECT_EQ(values.back(), 2);
        }
      },
      [&](ContextOptions& options) {
        options.backends = {"shm", "explodes"};
        options.progress_thread = thread;
        options.deadline = 30s;
      });
}

INSTANTIATE_TEST_SUITE_P(everywhere, Exceptions,
                         testing::Combine(testing::Values(Case{test::in_start, "refused in start"},
                                                          Case{test::in_poll, "lost count in poll"},
                                                          Case{test::in_progress, "bad_alloc"},
                                                          Case{test::in_check, "not a std::exception"}),
                                          testing::Values(UseThread::never, UseThread::always)));

/// Until its lane is aborted a library may use the memory of an operation, so the caller gets it back only then.
TEST(Losses, give_memory_back_after_the_lane_was_aborted) {
  for (const UseThread thread : {UseThread::never, UseThread::always}) {
    for (const bool alone : {true, false}) {
      test::run_threads(
          2,
          [&](Context& context) {
            Comm world = context.world(), doomed = world.dup();
            if (world.rank() == 0) {
              float value = 0, also_pending = 0;
              Work other;
              if (!alone)
                other = doomed.recv(std::span(&also_pending, 1), 1, {.backend = "explodes", .async = true, .tag = 1});
              try {
                doomed
                    .recv(std::span(&value, 1), 1, {.backend = "explodes", .async = !alone, .tag = test::lost_in_poll})
                    .wait();
                ADD_FAILURE() << "no error came";
              } catch (const Error& error) {
                EXPECT_EQ(error.kind(), ErrorKind::rank_lost) << error.what();
              }
              EXPECT_EQ(value, test::given_back_after_abort);
              if (!alone) {
                EXPECT_THROW(other.wait(), Error);
              }
            }
            world.barrier();
          },
          [&](ContextOptions& options) {
            options.backends = {"shm", "explodes"};
            options.progress_thread = thread;
            options.deadline = 30s;
          });
    }
  }
}

}  // namespace
}  // namespace medley
