// Predicted step times: ranks wait for each other, asynchronous operations hide behind computation, sizes
// between measured ones lie between their times.
#include "replay/predict.hpp"

#include <gtest/gtest.h>

#include <medley/error.hpp>

namespace medley::replay {
namespace {

using nlohmann::json;

/// all_reduce of two ranks on one host: 10 µs up to 1000 B, 100 µs at 10000 B over shm; gloo takes ten times
/// as long.
route::Table table() {
  route::Table out;
  for (const auto& [bytes, us] : {std::pair<std::int64_t, double>{1000, 10}, {10000, 100}}) {
    route::Cell cell;
    cell.key = {Op::all_reduce, Memory::host, route::DTypeClass::floating, {1, 2}, bytes};
    for (const auto& [backend, times] : {std::pair<const char*, double>{"shm", 1}, {"gloo", 10}}) {
      route::Timing timing;
      timing.route.backend = backend;
      timing.route.algorithm = "native";
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
/// 50 µs at the 1 GB/s that the tests ask for.
json compute() {
  return {{"kind", "memory"}, {"bytes", 50'000}};
}

double step_us(const std::vector<json>& first, const std::vector<json>& second, const char* backend = "shm") {
  json ranks = json::array();
  for (const auto& entries : {first, second})
    ranks.push_back({{"rank", ranks.size()}, {"groups", {{"all", {0, 1}}}}, {"entries", entries}});
  const WorldSchedule schedule =
      schedule_from_json({{"schema", "medley.schedule/1"}, {"world", 2}, {"ranks", ranks}}, "test");
  const route::Table routes = table();
  OperationTimes times(routes, backend, {"shm", "gloo"});
  const Prediction prediction = predict(schedule, {0, 0}, {.scale = 1, .tflops = 1, .memory_gbs = 1}, times);
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

TEST(Predict, sizes_between_measured_ones) {
  EXPECT_DOUBLE_EQ(step_us({all_reduce(4)}, {all_reduce(4)}), 10);
  EXPECT_DOUBLE_EQ(step_us({all_reduce(5500 / 4 * 4)}, {all_reduce(5500 / 4 * 4)}), 10 + 90 * 4500.0 / 9000);
  EXPECT_DOUBLE_EQ(step_us({all_reduce(20000)}, {all_reduce(20000)}), 200);
}

TEST(Predict, a_schedule_that_never_ends_is_refused) {
  EXPECT_THROW(step_us({all_reduce(1000)}, {}), Error);
}

}  // namespace
}  // namespace medley::replay
