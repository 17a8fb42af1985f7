// A blocking call that fails returns when the abort of its comm is over: until then a library may write to the caller's
// memory, which the caller frees as the error passes.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>

#include "harness/ranks.hpp"

namespace medley {
namespace {

std::atomic<int>& counter(const char* name) {
  static void* const plugin = dlopen(LINGERING_BACKENDS "/libmedley_backend_lingers.so", RTLD_NOW);
  EXPECT_NE(plugin, nullptr) << dlerror();
  return *static_cast<std::atomic<int>*>(dlsym(plugin, name));
}

class BlockingAbort : public testing::TestWithParam<Op> {};

TEST_P(BlockingAbort, is_over_when_the_call_throws) {
  std::latch seen(1);
  test::run_threads(
      2,
      [&](Context& context) {
        Comm comm = context.world().dup();
        if (context.rank() == 1) return seen.wait();  // outside Medley, so that only rank 0's lane is aborted
        counter("aborts_begun") = counter("aborts_over") = 0;
        float value = 1;
        try {
          if (GetParam() == Op::recv) {
            comm.recv(std::span(&value, 1), 1, {.backend = "lingers", .tag = 7});
          } else {
            comm.all_reduce(std::span(&value, 1), sum, {.backend = "lingers"});
          }
          ADD_FAILURE() << "no error";
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::rank_lost) << error.what();
          EXPECT_EQ(counter("aborts_begun"), 1);
          EXPECT_EQ(counter("aborts_over"), 1);
        }
        seen.count_down();
      },
      [](ContextOptions& options) {
        options.backends = {"shm", "lingers"};
        options.progress_thread = UseThread::never;
      });
}

INSTANTIATE_TEST_SUITE_P(of, BlockingAbort, testing::Values(Op::all_reduce, Op::recv),
                         [](const auto& tested) { return std::string(name(tested.param)); });

}  // namespace
}  // namespace medley
