// The shrinker, and programs with some of their steps removed.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

#include "soak/generate.hpp"
#include "soak/ideal_machine.hpp"
#include "soak/shrink.hpp"

namespace medley::soak {
namespace {

const auto never = [] { return false; };

RC_GTEST_PROP(Shrink, leaves_exactly_the_steps_a_failure_needs, ()) {
  const int steps = *rc::gen::inRange(1, 60);
  const auto needed = *rc::gen::container<std::set<int>>(rc::gen::inRange(0, steps));
  const auto fails = [&](const std::vector<int>& left_out) {
    return std::none_of(left_out.begin(), left_out.end(), [&](int i) { return needed.contains(i); });
  };
  const std::vector<int> left_out = shrink(steps, fails, never);
  RC_ASSERT(left_out.size() + needed.size() == static_cast<std::size_t>(steps));
  RC_ASSERT(fails(left_out));
}

TEST(Shrink, gives_up_when_told) {
  int asked = 0;
  shrink(
      1000, [&](const auto&) { return ++asked, true; }, [&] { return asked >= 3; });
  EXPECT_LE(asked, 3);
}

RC_GTEST_PROP(Without, what_is_left_still_finishes, ()) {
  GenerateOptions options;
  options.most_memory = 1 << 14;
  const Program whole = generate(*rc::gen::arbitrary<std::uint64_t>(), *rc::gen::inRange(2, 5), options);
  const auto removed = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, static_cast<int>(whole.steps.size())));
  const Program less = without(whole, removed);
  RC_ASSERT(run_ideal(less).finishes);
  for (const Step& step : less.steps) {  // nothing happens on a comm that is not made
    const int maker = less.comm(step.comm).made_by;
    if (!step.removed && maker >= 0) RC_ASSERT(!less.step(maker).removed);
  }
}

}  // namespace
}  // namespace medley::soak
