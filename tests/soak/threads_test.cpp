// Random programs with ranks as threads, for the sanitizers; and faults that must be detected.
#include <mutex>
#include <optional>

#include "harness/ranks.hpp"
#include "soak/generate.hpp"
#include "soak/run_program.hpp"
#include "soak/shuffled_routes.hpp"

namespace medley::soak {
namespace {

const GenerateOptions small{.backends = {"shm", "plain"}, .most_steps = 30, .most_memory = 1 << 16, .most_threads = 3};

/// The first failure on any rank in programs from `first` on; `judge` may change the expected result.
std::string first_wrong(int ranks, std::uint64_t first, int programs, const GenerateOptions& options,
                        const std::function<void(Program&)>& judge = {}) {
  std::mutex mutex;
  std::string wrong;
  const auto body = [&](Context& context) {
    for (int i = 0; i < programs; ++i) {
      const Program program = generate(first + static_cast<std::uint64_t>(i), ranks, options);
      Program judged = program;
      if (judge) judge(judged);
      const auto oracle = expect(judged);
      ASSERT_TRUE(oracle.has_value());
      const std::string said = run_program(context, program, *oracle, Memory::host, [](const std::exception&) {});
      context.world().barrier();
      if (said.empty()) continue;
      const std::lock_guard lock(mutex);
      if (wrong.empty()) wrong = "program " + std::to_string(program.seed) + ": " + said;
    }
  };
  std::optional<ShuffledRoutes> shuffled;
  if (options.online) shuffled.emplace(options.backends);
  test::run_threads(ranks, body, [&](ContextOptions& given) {
    given.backends = options.backends;
    if (shuffled) given.table = shuffled->table();
  });
  return wrong;
}

TEST(SoakThreads, of_two) { EXPECT_EQ(first_wrong(2, 1, SOAK_PROGRAMS, small), ""); }
TEST(SoakThreads, of_three) { EXPECT_EQ(first_wrong(3, 1000, SOAK_PROGRAMS, small), ""); }
TEST(SoakThreads, of_four) { EXPECT_EQ(first_wrong(4, 2000, SOAK_PROGRAMS, small), ""); }

TEST(SoakThreads, whose_routes_change_all_the_time) {
  GenerateOptions options = small;
  options.online = true;
  EXPECT_EQ(first_wrong(3, 3000, SOAK_PROGRAMS, options), "");
}

TEST(SoakNotices, a_backend_that_garbles_messages) {
  GenerateOptions options = small;
  options.backends = {"shm", "garbles"};
  EXPECT_NE(first_wrong(2, 1, 20, options), "");
}

TEST(SoakNotices, an_oracle_that_believes_something_else) {
  // The oracle skips the last step that writes anything.
  const auto forget_the_last = [](Program& program) {
    for (std::size_t i = program.steps.size(); i-- > 0;) {
      const Kind kind = program.steps[i].kind;
      if (kind == Kind::touch) {
        program.steps[i].removed = true;
        return;
      }
    }
  };
  EXPECT_NE(first_wrong(2, 1, 10, small, forget_the_last), "");
}

TEST(SoakNotices, an_error_beyond_the_bound_of_a_codec) {
  // The oracle expects bf16's error of what int4 and others have rounded.
  const auto expect_less = [](Program& program) {
    for (Step& step : program.steps) {
      if (rounds(step)) step.algorithm = "+bf16";
    }
  };
  EXPECT_NE(first_wrong(2, 1, 100, small, expect_less), "");
}

}  // namespace
}  // namespace medley::soak
