// Finds steps by period with any prologue and a short tail, and finds none where nothing repeats.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "trace/steps.hpp"

namespace medley::trace {
namespace {

using Keys = std::vector<std::uint64_t>;

TEST(Steps, a_layer_inside_a_step_is_not_the_step) {
  Keys keys;
  for (int step = 0; step < 5; ++step) {
    for (int layer = 0; layer < 8; ++layer) keys.insert(keys.end(), {1, 2});
    keys.push_back(9);
  }
  const Period period = find_period(keys);
  EXPECT_EQ(period.length, 17u);
  EXPECT_EQ(period.end - period.begin, keys.size());
}

TEST(Steps, what_never_repeats_has_no_period) {
  Keys keys;
  for (std::uint64_t i = 0; i < 100; ++i) keys.push_back(i);
  EXPECT_EQ(find_period(keys).length, 0u);
  EXPECT_EQ(find_period({}).length, 0u);
  EXPECT_EQ(find_period({7}).length, 0u);
}

RC_GTEST_PROP(Steps, a_prologue_and_a_short_tail_do_not_hide_the_period, ()) {
  const auto length = *rc::gen::inRange<std::size_t>(2, 40), times = *rc::gen::inRange<std::size_t>(4, 12);
  const auto prologue = *rc::gen::inRange<std::size_t>(0, 30), tail = *rc::gen::inRange<std::size_t>(0, 10);
  Keys step;
  for (std::size_t i = 0; i < length; ++i) step.push_back(*rc::gen::inRange<std::uint64_t>(1, 4));
  step.front() = 100;  // makes the step itself have no period
  Keys keys;
  for (std::size_t i = 0; i < prologue; ++i) keys.push_back(1000 + i);
  for (std::size_t i = 0; i < times; ++i) keys.insert(keys.end(), step.begin(), step.end());
  for (std::size_t i = 0; i < tail; ++i) keys.push_back(2000 + i);
  if (2 * length * times < keys.size()) RC_DISCARD("mostly prologue");
  const Period period = find_period(keys);
  RC_ASSERT(period.length == length);
  RC_ASSERT(period.begin == prologue);
  RC_ASSERT(period.end == keys.size() - tail);
}

}  // namespace
}  // namespace medley::trace
