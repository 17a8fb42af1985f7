// Finds steps by period with any prologue and a short tail, and finds none where nothing repeats.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <medley/error.hpp>

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

/// A rank's operations as bytes; each number is an operation of this size.
RankTrace operations(Trace& trace, const std::vector<std::int64_t>& sizes) {
  auto list = std::make_shared<EventList>();
  for (const std::int64_t bytes : sizes) {
    Event event;
    event.bytes = bytes;
    event.group = trace.group({"world", {0, 1}, 2});
    event.scope = trace.name("");
    list->events.push_back(event);
  }
  RankTrace rank;
  rank.events = std::move(list);
  return rank;
}

std::vector<std::pair<std::size_t, std::size_t>> borders(const Steps& steps) {
  std::vector<std::pair<std::size_t, std::size_t>> out;
  for (const Step& step : steps.steps) out.emplace_back(step.begin, step.end);
  return out;
}

using Borders = std::vector<std::pair<std::size_t, std::size_t>>;

/// A step of equal layers has the layer as its period: the number given says how many layers are one step.
TEST(Steps, a_number_cuts_whole_steps_of_several_equal_periods) {
  Trace trace;
  const RankTrace rank = operations(trace, {8, 4, 8, 4, 8, 4, 8, 4, 8, 4, 8, 4});  // 6 layers
  EXPECT_EQ(borders(find_steps(trace, rank, 2)), (Borders{{0, 6}, {6, 12}}));
  EXPECT_EQ(borders(find_steps(trace, rank, 3)), (Borders{{0, 4}, {4, 8}, {8, 12}}));
  EXPECT_EQ(borders(find_steps(trace, rank, 1)), (Borders{{0, 12}}));
  EXPECT_EQ(find_steps(trace, rank, 2).found_by, "count");
  EXPECT_EQ(find_steps(trace, rank).steps.size(), 6u) << "without a number, the period is the step";
}

TEST(Steps, a_number_leaves_the_set_up_and_the_tail_out) {
  Trace trace;
  const RankTrace rank = operations(trace, {100, 101, 8, 4, 2, 8, 4, 2, 8, 4, 2, 102});
  EXPECT_EQ(borders(find_steps(trace, rank, 3)), (Borders{{2, 5}, {5, 8}, {8, 11}}));
  EXPECT_EQ(borders(find_steps(trace, rank, 2)), (Borders{{5, 8}, {8, 11}})) << "the last ones, whole";
  EXPECT_THROW(find_steps(trace, rank, 13), Error);
}

/// Operations of a rank; 0 is one under the scope "step".
RankTrace bordered(Trace& trace, const std::vector<std::int64_t>& sizes) {
  RankTrace rank = operations(trace, sizes);
  for (Event& event : static_cast<EventList&>(*rank.events).events)
    if (event.bytes == 0) event.scope = trace.name(step_scope);
  return rank;
}

std::vector<std::size_t> lengths(const Steps& steps) {
  std::vector<std::size_t> out;
  for (const Step& step : steps.steps) out.push_back(step.end - step.begin);
  return out;
}

TEST(Steps, a_step_that_issues_nothing_counts) {
  using Lengths = std::vector<std::size_t>;
  const auto found = [](const std::vector<std::int64_t>& sizes, std::int64_t overwritten = 0) {
    Trace trace;
    RankTrace rank = bordered(trace, sizes);
    rank.issued = static_cast<std::int64_t>(sizes.size()) + overwritten;
    return lengths(find_steps(trace, rank));
  };
  EXPECT_EQ(found({7, 0, 1, 2, 0, 1, 2, 0, 1, 2}), (Lengths{2, 2, 2}));
  EXPECT_EQ(found({7, 0, 1, 2, 0, 0, 1, 2, 0, 1, 2, 0}), (Lengths{2, 0, 2, 2}));
  EXPECT_EQ(found({0, 0, 0, 1, 2, 0, 1, 2, 0, 1, 2}), (Lengths{0, 0, 2, 2, 2}));
  // A border of two operations, of which a ring has cut the first and a kill the last.
  EXPECT_EQ(found({0, 1, 2, 0, 0, 1, 2, 0, 0, 1, 2, 0}, 50), (Lengths{2, 2, 2}));
  EXPECT_EQ(found({0, 0, 1, 2, 0, 0, 0, 0, 1, 2, 0, 0, 1, 2}), (Lengths{2, 0, 2, 2}));
}

TEST(Steps, the_period_is_from_start_to_start_and_its_median_ignores_a_slow_step) {
  auto list = std::make_shared<EventList>();
  for (const double start_us : {0.0, 100.0, 200.0, 900.0, 1000.0, 1100.0}) {
    Event event;
    event.issued = start_us * 1e3;
    event.completed = event.issued + 20e3;
    list->events.push_back(event);
  }
  RankTrace rank;
  rank.events = list;
  Steps steps;
  for (std::size_t i = 0; i < 6; ++i) steps.steps.push_back({i, i + 1});
  EXPECT_EQ(step_period_us(rank, steps), 100);
  steps.steps.resize(1);
  EXPECT_EQ(step_period_us(rank, steps), 0);
}

}  // namespace
}  // namespace medley::trace
