// Expected against observed time: runs in which exactly one cause of waiting was planted, and what must be said about
// each.
#include "reconcile/time.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "reconcile/time_json.hpp"
#include "reconcile/timed_run.hpp"

namespace medley::reconcile {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;
using test::TimedRun;

constexpr int layers = 16;
constexpr std::int64_t size = 64 << 20;

/// A step of blocking all_gathers, one per layer.
Json gathers(int world, const Json& groups, int count = layers, std::int64_t bytes = size) {
  Json out = {{"schema", "medley.schedule/1"}, {"world", world}, {"ranks", Json::array()}};
  for (int rank = 0; rank < world; ++rank) {
    Json one = {{"rank", rank}, {"groups", Json::object()}, {"entries", Json::array()}};
    for (const Json& group : groups)
      if (std::find(group.begin(), group.end(), rank) != group.end()) one["groups"]["dp"] = group;
    for (int layer = 0; layer < count; ++layer)
      one["entries"].push_back({{"kind", "comm"},
                                {"phase", "forward"},
                                {"module", "weights"},
                                {"op", "all_gather"},
                                {"group", "dp"},
                                {"dtype", "bf16"},
                                {"bytes", bytes},
                                {"layer", layer}});
    out["ranks"].push_back(one);
  }
  return out;
}

cost::Machine machine() { return cost::find_machine("dgx-h100"); }

TimeReport compared(const trace::Trace& trace, const Json& schedule, std::optional<cost::Machine> with = machine(),
                    std::optional<route::Table> table = std::nullopt, const Selection& selection = {}) {
  const Expectation expectation(replay::schedule_from_json(schedule, "step.json"), 1, trace.world);
  Selection whole = selection;
  whole.steps = std::max<std::size_t>(1, selection.steps);
  return compare_times(trace, expectation, whole, {},
                       TimeModel(trace, std::move(with), std::move(table), "routes.json"));
}

/// µs that the model gives an all_gather of `size` on two ranks of a host.
double promised(Op op = Op::all_gather, std::int64_t bytes = size) {
  return cost::LinkTime(machine()).collective_us(op, static_cast<double>(bytes),
                                                 {.size = 2, .hosts = 1, .per_host = 2});
}

TimedRun run_of_gathers(int count, const std::function<double(int layer)>& takes,
                        const std::function<double(int rank, int layer)>& late) {
  TimedRun run(2);
  double now = 10;
  for (int layer = 0; layer < count; ++layer) {
    const double last = now + std::max(late(0, layer), late(1, layer)), end = last + takes(layer);
    for (const int rank : {0, 1}) {
      const double called = now + late(rank, layer);
      run.add(rank, Op::all_gather, {0, 1}, size, called, called, end);
    }
    now = end + 5;
  }
  return run;
}

const TimeFinding& first(const TimeReport& report) {
  static const TimeFinding none{WaitCause::unknown, 0, false, "nothing was found"};
  return report.findings.empty() ? none : report.findings.front();
}

/// Every row's causes add up to its exposed time.
void expect_sums(const TimeReport& report) {
  for (const TimeRow& row : report.rows) {
    if (row.exposed_us) {
      EXPECT_NEAR(row.waits.total(), *row.exposed_us, 1e-6);
    }
  }
}

const Json pair = Json::array({Json::array({0, 1})});
const auto nobody = [](int, int) { return 0.0; };

TEST(Time, NamesTheLayersThatDoNotReachTheLink) {
  const auto takes = [](int layer) { return promised() * (layer >= 3 && layer <= 12 ? 16 : 1); };
  const TimeReport report = compared(run_of_gathers(layers, takes, nobody).trace, gathers(2, pair));
  ASSERT_EQ(report.rows.size(), 3u);
  const TimeRow& slow = report.rows[0];
  EXPECT_EQ(std::pair(slow.first_layer, slow.last_layer), std::pair(std::int64_t{3}, std::int64_t{12}));
  EXPECT_DOUBLE_EQ(slow.count, 10);
  EXPECT_NEAR(*slow.expected_us, promised(), 1e-9);
  EXPECT_NEAR(*slow.observed_us, 16 * promised(), 1);
  const double wire = static_cast<double>(size) / 2 / (machine().inside.gb_per_s * 1e3);
  EXPECT_NEAR(*slow.of_link, wire / (16 * promised()), 1e-3);
  EXPECT_EQ(first(report).cause, WaitCause::slow);
  EXPECT_NEAR(first(report).us, 10 * 15 * promised(), 1);
  EXPECT_THAT(first(report).sentence, StartsWith("the all_gathers of layers 3 to 12 (67108864 B on dp) reach 4."));
  EXPECT_THAT(first(report).sentence, HasSubstr("% of the link"));
  EXPECT_NEAR(report.waits()[WaitCause::slow] + report.waits()[WaitCause::blocking], *report.exposed_us(), 1);
  expect_sums(report);
}

TEST(Time, SmallMessagesAreNotHeldAgainstTheLink) {
  TimedRun run(2);
  for (int layer = 0; layer < 4; ++layer)
    for (const int rank : {0, 1})
      run.add(rank, Op::all_gather, {0, 1}, 8, 1000 * layer, 1000 * layer, 1000 * layer + 500);
  const TimeReport report = compared(run.trace, gathers(2, pair, 4, 8));
  EXPECT_EQ(first(report).cause, WaitCause::slow);
  EXPECT_THAT(first(report).sentence, StartsWith("the all_gathers of layers 0 to 3 (8 B on dp) take 500.0 µs each, "));
}

TEST(Time, AFewSlowOperationsAreNotTheUsualOnes) {
  const TimeReport report = compared(run_of_gathers(
                                         layers * 4, [](int i) { return promised() * (i % 16 == 5 ? 50 : 1); }, nobody)
                                         .trace,
                                     gathers(2, pair), machine(), std::nullopt, {.steps = 4});
  ASSERT_EQ(report.rows.size(), 3u);  // layer 5 is slow in every step
  EXPECT_EQ(report.rows[0].first_layer, 5);
  const TimeReport once = compared(run_of_gathers(
                                       layers * 4, [](int i) { return promised() * (i == 5 ? 50 : 1); }, nobody)
                                       .trace,
                                   gathers(2, pair), machine(), std::nullopt, {.steps = 4});
  ASSERT_EQ(once.rows.size(), 1u);
  EXPECT_NEAR(*once.rows[0].slowest_us, 50 * promised(), 1);
  const auto slow = std::find_if(once.findings.begin(), once.findings.end(),
                                 [](const TimeFinding& f) { return f.cause == WaitCause::slow; });
  ASSERT_NE(slow, once.findings.end());
  EXPECT_NEAR(slow->us, 49 * promised() / 4, 1) << "of a step";
  EXPECT_THAT(slow->sentence, StartsWith("some of the all_gathers of layers 0 to 15"));
}

TEST(Time, NamesTheLateRankAndDoesNotCallItsTransferSlow) {
  const TimeReport report =
      compared(run_of_gathers(
                   layers, [](int) { return promised(); }, [](int rank, int) { return rank * 500.0; })
                   .trace,
               gathers(2, pair));
  ASSERT_EQ(report.rows.size(), 1u);
  EXPECT_NEAR(*report.rows[0].observed_us, promised(), 0.1);
  EXPECT_EQ(first(report).cause, WaitCause::late_rank);
  EXPECT_NEAR(first(report).us, layers * 500 / 2.0, 1e-6) << "rank 0 waits, rank 1 does not";
  EXPECT_THAT(first(report).sentence, HasSubstr("rank 1 is late"));
  EXPECT_NEAR(report.waits()[WaitCause::slow], 0, 0.1);
  expect_sums(report);
}

TEST(Time, LatenessBelowTheErrorOfTheClocksIsNone) {
  TimedRun run = run_of_gathers(
      layers, [](int) { return promised(); }, [](int rank, int) { return rank * 5.0; });
  run.trace.clock_error = 20e3;
  EXPECT_DOUBLE_EQ(compared(run.trace, gathers(2, pair)).waits()[WaitCause::late_rank], 0);
  run.trace.clock_error = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(compared(run.trace, gathers(2, pair)).rows[0].with_waiting);
}

TEST(Time, QueueingBehindAnotherOperationOfTheGroup) {
  TimedRun run(2);
  for (const int rank : {0, 1}) {
    run.add_async(rank, Op::all_gather, {0, 1}, size, 10, 10, 1e9, 10 + promised());
    run.add(rank, Op::all_gather, {0, 1}, 4096, 20, 10 + promised(), 10 + promised() + promised(Op::all_gather, 4096));
  }
  const TimeReport report = compared(run.trace, gathers(2, pair));
  EXPECT_EQ(first(report).cause, WaitCause::queue);
  EXPECT_NEAR(first(report).us, promised() - 10, 0.1);
  EXPECT_THAT(first(report).sentence, HasSubstr("the all_gathers of 4096 B on dp wait"));
  EXPECT_THAT(first(report).sentence, HasSubstr("mostly all_gather of 67108864 B"));
  EXPECT_NEAR(report.waits()[WaitCause::order], 0, 1e-6);
  expect_sums(report);
}

TEST(Time, AnOperationThatStartsLateWaitsForOrder) {
  TimedRun run(2);
  for (const int rank : {0, 1}) run.add(rank, Op::all_gather, {0, 1}, size, 10, 310, 310 + promised());
  const TimeReport report = compared(run.trace, gathers(2, pair, 1));
  EXPECT_NEAR(report.waits()[WaitCause::order], 300, 1e-6);
  EXPECT_NEAR(report.waits()[WaitCause::blocking], promised(), 1e-6);
  EXPECT_NEAR(*report.rows[0].observed_us, promised(), 0.1) << "of the transfer, without the time before its start";
  // On one rank alone: the other one waits for it, though it called in time.
  TimedRun one(2);
  one.add(0, Op::all_gather, {0, 1}, size, 10, 10, 310 + promised());
  one.add(1, Op::all_gather, {0, 1}, size, 10, 310, 310 + promised());
  const TimeReport other = compared(one.trace, gathers(2, pair, 1));
  EXPECT_NEAR(other.waits()[WaitCause::order], 300, 1e-6);
  EXPECT_NEAR(other.waits()[WaitCause::late_rank], 0, 1e-6);
}

TEST(Time, BlockingCallsAreExposedByDesign) {
  const TimeReport report = compared(run_of_gathers(
                                         layers, [](int) { return promised(); }, nobody)
                                         .trace,
                                     gathers(2, pair));
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(first(report).cause, WaitCause::blocking);
  EXPECT_NEAR(first(report).us, layers * promised(), 0.1);
  EXPECT_THAT(first(report).sentence, HasSubstr("of layers 0 to 15"));
  EXPECT_THAT(first(report).sentence, HasSubstr("by design"));
}

TEST(Time, AnAsynchronousOperationThatIsAwaitedTooEarly) {
  TimedRun run(2);
  for (const int rank : {0, 1}) run.add_async(rank, Op::all_gather, {0, 1}, size, 10, 10, 60, 10 + promised());
  const TimeReport report = compared(run.trace, gathers(2, pair, 1));
  EXPECT_EQ(first(report).cause, WaitCause::overlap);
  EXPECT_NEAR(first(report).us, promised() - 50, 1e-6);
  // Hidden entirely: nothing is exposed, though the transfer is slow.
  TimedRun hidden(2);
  for (const int rank : {0, 1}) hidden.add_async(rank, Op::all_gather, {0, 1}, size, 10, 10, 1e6, 10 + 9 * promised());
  EXPECT_TRUE(compared(hidden.trace, gathers(2, pair, 1)).findings.empty());
}

TEST(Time, SeveralOperationsAwaitedAtOnceCountOnce) {
  TimedRun run(2);
  for (const int rank : {0, 1})
    for (int i = 0; i < 4; ++i) run.add_async(rank, Op::all_gather, {0, 1}, size, 10 + i, 10 + i, 20, 20 + promised());
  EXPECT_NEAR(*compared(run.trace, gathers(2, pair, 4)).exposed_us(), promised(), 1e-6);
}

TEST(Time, WithoutTheOtherRanksTheCauseIsUnknown) {
  TimedRun run = run_of_gathers(
      layers, [](int) { return 3 * promised(); }, nobody);
  run.trace.ranks.pop_back();
  const TimeReport report = compared(run.trace, gathers(2, pair));
  EXPECT_TRUE(report.rows[0].with_waiting);
  EXPECT_EQ(first(report).cause, WaitCause::unknown);
  EXPECT_NEAR(first(report).us, layers * 2 * promised(), 0.1);
  EXPECT_THAT(first(report).sentence, HasSubstr("does not say when the other ranks were ready"));
  EXPECT_THAT(report.remarks, ::testing::Contains(HasSubstr("include waiting for other ranks")));
}

TEST(Time, SourcesWithoutWaitsOrTimesSaySo) {
  TimedRun run = run_of_gathers(
      layers, [](int layer) { return promised() * (layer == 7 ? 10 : 1); }, nobody);
  run.trace.waits_known = false;
  const TimeReport report = compared(run.trace, gathers(2, pair));
  EXPECT_FALSE(report.exposed_us());
  EXPECT_FALSE(first(report).exposed);
  EXPECT_THAT(first(report).sentence, StartsWith("the all_gathers of layer 7 (67108864 B on dp) reach"));
  EXPECT_THAT(report.remarks, ::testing::Contains(HasSubstr("exposed times are unknown")));
  run.trace.timed = false;
  const TimeReport untimed = compared(run.trace, gathers(2, pair));
  ASSERT_EQ(untimed.rows.size(), 1u);
  EXPECT_FALSE(untimed.rows[0].observed_us);
  EXPECT_NEAR(*untimed.rows[0].expected_us, promised(), 1e-9);
  EXPECT_TRUE(untimed.findings.empty());
  EXPECT_THAT(untimed.remarks, ::testing::Contains(HasSubstr("observed times are unknown")));
}

TEST(Time, PolledStartsAndCallsAloneTellNothingAboutTransfers) {
  TimedRun run = run_of_gathers(
      layers, [](int) { return promised(); }, [](int rank, int) { return rank * 500.0; });
  run.trace.starts_exact = false;
  EXPECT_TRUE(compared(run.trace, gathers(2, pair)).rows[0].with_waiting);
  for (const trace::RankTrace& rank : run.trace.ranks)
    for (trace::Event& event : static_cast<trace::EventList&>(*rank.events).events) event.call_only = true;
  const TimeReport calls = compared(run.trace, gathers(2, pair));
  EXPECT_FALSE(calls.rows[0].observed_us);
  EXPECT_THAT(calls.remarks, ::testing::Contains(HasSubstr("only those of the host's call")));
}

TEST(Time, OneSlowGroupOfManyIsItsOwnRow) {
  TimedRun run(4);
  for (int rank = 0; rank < 4; ++rank) {
    const std::vector<int> group = rank < 2 ? std::vector{0, 1} : std::vector{2, 3};
    run.add(rank, Op::all_gather, group, size, 10, 10, 10 + promised() * (rank < 2 ? 1 : 8));
  }
  const TimeReport report = compared(run.trace, gathers(4, Json::array({Json::array({0, 1}), Json::array({2, 3})}), 1));
  ASSERT_EQ(report.rows.size(), 2u);
  EXPECT_EQ(report.rows[0].only, (std::vector<std::vector<int>>{{2, 3}}));
  EXPECT_DOUBLE_EQ(report.rows[0].count, 1);
  EXPECT_THAT(first(report).sentence, HasSubstr("ranks 2, 3"));
}

TEST(Time, OnADeviceAKernelThatStartsLateMakesItsRankLate) {
  TimedRun run(2);
  for (const int rank : {0, 1}) {
    trace::Event& event =
        run.add_async(rank, Op::all_gather, {0, 1}, size, 10, 1000 + 400 * rank, 1000, 1400 + promised());
    event.on_device = true;
  }
  const TimeReport report = compared(run.trace, gathers(2, pair, 1));
  EXPECT_NEAR(report.waits()[WaitCause::late_rank], 200, 1e-6);
  EXPECT_THAT(first(report).sentence, ::testing::AnyOf(HasSubstr("rank 1 is late"), HasSubstr("asynchronous")));
}

Json one_entry(Op op, const Json& more) {
  Json schedule = gathers(2, pair, 1);
  for (Json& rank : schedule["ranks"]) {
    rank["entries"][0]["op"] = name(op);
    rank["entries"][0].update(more);
  }
  return schedule;
}

TEST(Time, RootsAndSendersAreWaitedForOthersAreNot) {
  const double usual = promised(Op::broadcast);
  TimedRun late_root(2), late_leaf(2);
  for (const int rank : {0, 1}) {
    late_root.add(rank, Op::broadcast, {0, 1}, size, rank == 0 ? 510 : 10, rank == 0 ? 510 : 10, 510 + usual).peer = 0;
    late_leaf
        .add(rank, Op::broadcast, {0, 1}, size, rank == 0 ? 10 : 510, rank == 0 ? 10 : 510,
             rank == 0 ? 10 + usual : 510 + usual)
        .peer = 0;
  }
  EXPECT_NEAR(compared(late_root.trace, one_entry(Op::broadcast, Json::object())).waits()[WaitCause::late_rank], 250,
              1e-6);
  EXPECT_NEAR(compared(late_leaf.trace, one_entry(Op::broadcast, Json::object())).waits()[WaitCause::late_rank], 0,
              1e-6);

  Json message = one_entry(Op::send, {{"peer", 1}});
  message["ranks"][1]["entries"][0].update({{"op", "recv"}, {"peer", 0}});
  TimedRun sent(2);
  sent.add(0, Op::send, {0, 1}, size, 510, 510, 510 + usual).peer = 1;
  sent.add(1, Op::recv, {0, 1}, size, 10, 10, 510 + usual).peer = 0;
  const TimeReport report = compared(sent.trace, message);
  EXPECT_NEAR(report.waits()[WaitCause::late_rank], 250, 1e-6);
  EXPECT_TRUE(std::any_of(report.findings.begin(), report.findings.end(),
                          [](const TimeFinding& f) { return f.sentence.starts_with("rank 0 is late"); }));
}

TEST(Time, ATableGivesTheTimesOfItsRoutes) {
  route::Table table;
  for (const std::int64_t bytes : {size / 2, size})
    table.put({{Op::all_gather, Memory::host, route::DTypeClass::any, {1, 2}, bytes},
               {{{"shm", "native"}, static_cast<double>(bytes) / 1e4, 0, 0, 9},
                {{"gloo", "native"}, static_cast<double>(bytes) / 1e3, 0, 0, 9}},
               1});
  const double usual = static_cast<double>(size) / 1e4;
  TimedRun run = run_of_gathers(
      layers, [&](int) { return 2 * usual; }, nobody);
  const TimeReport report = compared(run.trace, gathers(2, pair), std::nullopt, table);
  ASSERT_EQ(report.rows.size(), 1u);
  EXPECT_NEAR(*report.rows[0].expected_us, usual, 1e-6);
  EXPECT_FALSE(report.rows[0].of_link) << "a table knows no link";
  EXPECT_EQ(report.source, "routes.json");
  EXPECT_NEAR(report.waits()[WaitCause::slow], layers * usual, 1);
  // What ran over gloo is held against gloo.
  for (const trace::RankTrace& rank : run.trace.ranks)
    for (trace::Event& event : static_cast<trace::EventList&>(*rank.events).events)
      event.backend = run.trace.name("gloo");
  EXPECT_NEAR(*compared(run.trace, gathers(2, pair), std::nullopt, table).rows[0].expected_us, 10 * usual, 1e-6);
  // Sizes that it does not have are the machine's, or unknown.
  const Json small = gathers(2, pair, 1, 8 * size);
  TimedRun other(2);
  for (const int rank : {0, 1}) other.add(rank, Op::all_gather, {0, 1}, 8 * size, 10, 10, 1e5);
  EXPECT_EQ(compared(other.trace, small, std::nullopt, table).findings.at(0).cause, WaitCause::unknown);
  EXPECT_EQ(compared(other.trace, small, machine(), table).findings.at(0).cause, WaitCause::slow);
}

TEST(Time, RanksAreOnTheHostsThatTheTraceNames) {
  TimedRun run = run_of_gathers(
      1, [](int) { return 1e4; }, nobody);
  run.trace.ranks[0].host = "a";
  run.trace.ranks[1].host = "b";
  const double between = cost::LinkTime(machine()).collective_us(Op::all_gather, static_cast<double>(size),
                                                                 {.size = 2, .hosts = 2, .per_host = 1});
  EXPECT_NEAR(*compared(run.trace, gathers(2, pair, 1)).rows[0].expected_us, between, 1e-6);
}

TEST(Time, LayersAreUnknownWhereTheRunIsNotThePlan) {
  const TimedRun run = run_of_gathers(
      layers, [](int) { return promised(); }, nobody);
  const TimeReport report = compared(run.trace, gathers(2, pair, layers - 1));
  ASSERT_EQ(report.rows.size(), 1u);
  EXPECT_EQ(report.rows[0].first_layer, -1);
  EXPECT_THAT(first(report).sentence, StartsWith("the all_gathers of 67108864 B on dp block"));
}

TEST(Time, JsonSaysNullForWhatIsNotKnown) {
  TimedRun run = run_of_gathers(
      layers, [](int) { return 4 * promised(); }, nobody);
  const Json json = to_json(compared(run.trace, gathers(2, pair)));
  ASSERT_EQ(json["time"].size(), 1u);
  EXPECT_EQ(json["time"][0]["layers"], Json::array({0, 15}));
  EXPECT_EQ(json["exposed"][0]["cause"], "slow");
  EXPECT_NEAR(json["time_summary"]["exposed_us"].get<double>(), layers * 4 * promised(), 1);
  run.trace.timed = false;
  const Json untimed = to_json(compared(run.trace, gathers(2, pair)));
  EXPECT_TRUE(untimed["time"][0]["observed_us"].is_null());
  EXPECT_TRUE(untimed["time"][0]["causes"].is_null());
  EXPECT_TRUE(untimed["time_summary"]["exposed_us"].is_null());
}

/// Whatever the times, the causes add up to the wait.
TEST(Time, CausesAlwaysAddUp) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> any(0, 1000);
  for (int i = 0; i < 20'000; ++i) {
    trace::Event event;
    event.issued = any(random);
    event.started = random() % 8 == 0 ? -1 : event.issued + any(random) * static_cast<double>(random() % 2);
    event.completed = std::max(event.issued, event.started) + any(random);
    event.async = random() % 2;
    Wait wait{any(random), any(random), std::nullopt, std::nullopt};
    if (random() % 2) wait.last = Ready{static_cast<int>(random() % 3), any(random), any(random)};
    if (random() % 2) wait.expected_us = any(random) / 1e3;
    const Waits waits = divide(event, 0, wait);
    ASSERT_NEAR(waits.total() * 1e3, std::max(0.0, event.completed - wait.begin), 1e-6) << i;
    for (std::size_t c = 0; c < wait_cause_count; ++c) ASSERT_GE(waits[static_cast<WaitCause>(c)], 0) << i;
  }
}

}  // namespace
}  // namespace medley::reconcile
