// Predicted step times: ranks wait for each other, asynchronous operations overlap computation, concurrent
// operations share ranks and cores, and times are interpolated between measured sizes.
#include "replay/predict.hpp"

#include <gtest/gtest.h>

#include <medley/error.hpp>

#include "replay/part_times.hpp"
#include "replay/sharing.hpp"

namespace medley::replay {
namespace {

using nlohmann::json;

/// all_reduce of two ranks on one host: 10 µs up to 1000 B, 100 µs at 10000 B over shm; gloo takes ten times
/// as long by itself and twice as long by another algorithm.
route::Table table() {
  route::Table out;
  for (const auto& [bytes, us] : {std::pair<std::int64_t, double>{1000, 10}, {10000, 100}}) {
    route::Cell cell;
    cell.key = {Op::all_reduce, Memory::host, route::DTypeClass::floating, {1, 2}, bytes};
    for (const auto& [backend, algorithm, times] :
         {std::tuple{"shm", "native", 1.0}, {"gloo", "ring", 2.0}, {"gloo", "native", 10.0}}) {
      route::Timing timing;
      timing.route.backend = backend;
      timing.route.algorithm = algorithm;
      timing.median_us = timing.low_us = timing.high_us = us * times;
      timing.samples = 9;
      cell.routes.push_back(timing);
    }
    out.put(std::move(cell));
  }
  return out;
}

json all_reduce(std::int64_t bytes, int token = 0) {
  json entry = {{"kind", "comm"}, {"op", "all_reduce"}, {"group", "all"}, {"dtype", "f32"}, {"bytes", bytes}};
  if (token > 0) entry["token"] = token;
  return entry;
}
/// 50 µs at the 1 GB/s that the tests use.
json compute() { return {{"kind", "memory"}, {"bytes", 50'000}}; }

double step_us(const std::vector<json>& first, const std::vector<json>& second, const char* backend = "shm") {
  json ranks = json::array();
  for (const auto& entries : {first, second})
    ranks.push_back({{"rank", ranks.size()}, {"groups", {{"all", {0, 1}}}}, {"entries", entries}});
  const WorldSchedule schedule =
      schedule_from_json({{"schema", "medley.schedule/1"}, {"world", 2}, {"ranks", ranks}}, "test");
  const route::Table routes = table();
  OperationTimes times(routes, backend, {"shm", "gloo"});
  const Places places{{0, 0}, {0, 0}, {2, 2}};
  const Prediction prediction =
      predict(schedule, places, {.scale = 1, .tflops = 1, .memory_gbs = 1}, time_by_table(times, places.hosts, 1));
  EXPECT_EQ(prediction.unknown, 0u);
  return prediction.step_us;
}

TEST(Predict, ranks_wait_for_each_other) {
  EXPECT_DOUBLE_EQ(step_us({all_reduce(1000)}, {compute(), all_reduce(1000)}), 60);
  EXPECT_DOUBLE_EQ(step_us({all_reduce(1000)}, {all_reduce(1000)}, "gloo"), 100);
  EXPECT_DOUBLE_EQ(step_us({all_reduce(1000)}, {all_reduce(1000)}, ""), 10);  // the table's choice
}

TEST(Predict, asynchronous_operations_hide_behind_computation) {
  const std::vector<json> step = {all_reduce(1000, 1), compute(), {{"kind", "wait"}, {"token", 1}}};
  EXPECT_DOUBLE_EQ(step_us(step, step), 50);
  const std::vector<json> late = {all_reduce(10000, 1), compute(), {{"kind", "wait"}, {"token", 1}}};
  EXPECT_DOUBLE_EQ(step_us(late, late), 100);
}

constexpr ReplayOptions one_gbs{.scale = 1, .tflops = 1, .memory_gbs = 1};

json message(const char* op, int peer, int token = 0, int batch = 0) {
  json entry = {{"kind", "comm"}, {"op", op}, {"group", "all"}, {"dtype", "u8"}, {"bytes", 100}, {"peer", peer}};
  if (token > 0) entry["token"] = token;
  if (batch > 0) entry["batch"] = batch;
  return entry;
}

/// A world whose ranks run these entries, with groups "all", and "pair" of two neighbours.
WorldSchedule world_of(const std::vector<std::vector<json>>& entries) {
  json ranks = json::array(), all = json::array();
  for (std::size_t r = 0; r < entries.size(); ++r) all.push_back(r);
  for (std::size_t r = 0; r < entries.size(); ++r) {
    const json groups = {{"all", all}, {"pair", {r / 2 * 2, r / 2 * 2 + 1}}};
    ranks.push_back({{"rank", r}, {"groups", groups}, {"entries", entries[r]}});
  }
  return schedule_from_json({{"schema", "medley.schedule/1"}, {"world", entries.size()}, {"ranks", ranks}}, "test");
}

/// Four ranks of one machine with this many cores; every operation takes 100 µs alone.
double step_of_four(const std::vector<json>& entries, int cores) {
  const Places places{{0, 0, 0, 0}, {0, 0, 0, 0}, {cores, cores, cores, cores}};
  const auto all_take_100 = [](const Action&, const std::vector<int>&) { return 100.0; };
  return predict(world_of({entries, entries, entries, entries}), places, one_gbs, all_take_100).step_us;
}

TEST(Predict, pairs_at_the_same_time_share_the_cores_that_there_are) {
  json in_pairs = all_reduce(1000);
  in_pairs["group"] = "pair";
  EXPECT_DOUBLE_EQ(step_of_four({in_pairs}, 4), 100);
  EXPECT_DOUBLE_EQ(step_of_four({in_pairs}, 2), 200);
  EXPECT_DOUBLE_EQ(step_of_four({all_reduce(1000)}, 2), 100) << "that four share two cores is in its time";
}

TEST(Predict, operations_of_a_rank_share_it) {
  json in_pairs = all_reduce(1000, 1);
  in_pairs["group"] = "pair";
  // Half of each in the first 50 µs, during computation, which takes no core; then the rest of both.
  EXPECT_DOUBLE_EQ(step_of_four({in_pairs, all_reduce(1000, 2), compute()}, 4), 200);
}

TEST(Predict, a_longer_operation_goes_on_alone) {
  const std::vector<std::vector<int>> who{{0, 1}, {1, 2}, {4, 5}};
  const Places places{{0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 1, 1}, {8, 8, 8, 8, 1, 1}};
  EXPECT_EQ(speeds({&who[0], &who[1], &who[2]}, places), (std::vector<double>{0.5, 0.5, 1}));
  EXPECT_EQ(speeds({&who[1]}, places), (std::vector<double>{1}));
}

TEST(Predict, the_order_is_one_in_which_each_rank_follows_its_schedule) {
  // Both send and receive at once: one at a time, rank 0 must send first, or both must start as a batch.
  const WorldSchedule schedule = world_of({{message("send", 1, 0, 1), message("recv", 1, 0, 1), all_reduce(1000)},
                                           {message("recv", 0, 0, 1), message("send", 0, 0, 1), all_reduce(1000)}});
  const Places places{{0, 0}, {0, 0}, {2, 2}};
  const Prediction made = predict(schedule, places, one_gbs, [](const Action& action, const auto&) {
    return action.op == Op::all_reduce ? 10.0 : 100.0;
  });
  EXPECT_DOUBLE_EQ(made.step_us, 210) << "the two messages share both ranks";
  ASSERT_EQ(made.order.size(), 3u);
  EXPECT_EQ(made.order[0].who, (std::vector<int>{0, 1}));
  EXPECT_EQ(made.order[0].entries, (std::vector<std::size_t>{0, 0}));
  EXPECT_EQ(made.order[1].who, (std::vector<int>{1, 0}));
  EXPECT_EQ(made.order[1].entries, (std::vector<std::size_t>{1, 1}));
  EXPECT_FALSE(made.order[2].message);
  EXPECT_EQ(made.order[2].entries, (std::vector<std::size_t>{2, 2}));
}

TEST(PartTimes, are_the_mean_of_equal_operations) {
  const std::vector<json> step{all_reduce(1000), all_reduce(4000), all_reduce(1000)};
  const WorldSchedule schedule = world_of({step, step});
  const Places places{{0, 0}, {0, 0}, {2, 2}};
  const auto order = predict(schedule, places, one_gbs, [](const Action&, const auto&) { return 0.0; }).order;
  const PartTimes times(schedule.ranks, order, {10, 100, 30});
  const auto alone = [&](const Action& action, const std::vector<int>& who) { return times.us(action, who); };
  EXPECT_EQ(alone(schedule.ranks[0].actions[0], {0, 1}), 20.0);
  EXPECT_EQ(alone(schedule.ranks[0].actions[1], {0, 1}), 100.0);
  EXPECT_FALSE(alone(schedule.ranks[0].actions[1], {0, 2}));
  const Prediction made = predict(schedule, places, one_gbs, alone);
  EXPECT_DOUBLE_EQ(made.step_us, 140);
  EXPECT_EQ(made.unknown, 0u);
}

TEST(Predict, sizes_between_measured_ones) {
  EXPECT_DOUBLE_EQ(step_us({all_reduce(4)}, {all_reduce(4)}), 10);
  EXPECT_DOUBLE_EQ(step_us({all_reduce(5500 / 4 * 4)}, {all_reduce(5500 / 4 * 4)}), 10 + 90 * 4500.0 / 9000);
  EXPECT_DOUBLE_EQ(step_us({all_reduce(20000)}, {all_reduce(20000)}), 200);
}

TEST(Predict, nothing_is_made_up_far_beyond_the_largest_size) {
  const route::Table routes = table();
  OperationTimes times(routes, "shm", {"shm", "gloo"});
  EXPECT_TRUE(times.us(Op::all_reduce, DType::f32, 20000, {1, 2}));
  EXPECT_FALSE(times.us(Op::all_reduce, DType::f32, 20004, {1, 2}));
}

TEST(Predict, a_schedule_that_never_ends_is_refused) { EXPECT_THROW(step_us({all_reduce(1000)}, {}), Error); }

}  // namespace
}  // namespace medley::replay
