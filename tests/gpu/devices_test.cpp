// Which CUDA device a context takes, over the mock of CUDA.
#include <gtest/gtest.h>
#include <mock.hpp>

#include <cstdlib>

#include "harness/ranks.hpp"

namespace medley {
namespace {

TEST(Devices, RanksOfAHostTakeThemRoundRobinUnlessTheProgramChooses) {
  setenv("MEDLEY_CUDA", "1", 1);
  setenv("MEDLEY_BACKEND_PATH", MOCK_BACKENDS, 1);
  mock_cuda_devices(2);
  const auto over_shm = [](ContextOptions& options) { options.backends = {"shm"}; };
  test::run_threads(
      3, [](Context& context) { EXPECT_EQ(context.device(), context.rank() % 2); }, over_shm);
  test::run_threads(
      2, [](Context& context) { EXPECT_EQ(context.device(), 1); },
      [&](ContextOptions& options) {
        over_shm(options);
        options.device = 1;
      });
}

}  // namespace
}  // namespace medley
