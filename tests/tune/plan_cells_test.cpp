// Which cells the tuner measures: everything once, then where routes are close.
#include "tune/plan_cells.hpp"

#include <gtest/gtest.h>

#include "route/tables.hpp"

namespace medley::tune {
namespace {

using route::cell;
using route::timing;

const TuneOptions two_ops{.ops = {Op::all_gather, Op::barrier}, .sizes = {64, 256, 1024, 4096}, .backends = {"shm"}};
const std::vector<route::Shape> pair{{1, 2}};

TEST(UsedShapes, AreTheNearestOfWhatTheJobHas) {
  const std::vector<route::Shape> job{{2, 4}, {1, 4}, {2, 1}};
  EXPECT_EQ(used_shapes(job, {{2, 4}, {1, 2}}), (std::set<route::Shape>{{2, 4}, {1, 4}}));
  EXPECT_TRUE(used_shapes({{1, 4}}, {{2, 2}}).empty());
}

TEST(FirstLook, TakesEveryOtherSizeFirstAndABarrierOnce) {
  const auto keys = first_look(two_ops, pair, {});
  std::vector<std::int64_t> sizes;
  int barriers = 0;
  for (const auto& key : keys) key.op == Op::barrier ? static_cast<void>(++barriers) : sizes.push_back(key.bytes);
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{64, 1024, 256, 4096}));
  EXPECT_EQ(barriers, 1);
}

TEST(FirstLook, PassesOverWhatTheTableIsSureOf) {
  route::Table table;
  table.put(cell(Op::all_gather, {1, 2}, 64, {timing("shm", "native", 1), timing("shm", "ring", 5)}));  // 0.99
  route::Cell unsure = cell(Op::all_gather, {1, 2}, 256, {timing("shm", "native", 1), timing("shm", "ring", 1.01)});
  unsure.confidence = 0.55;
  table.put(unsure);
  std::vector<std::int64_t> sizes;
  for (const auto& key : first_look(two_ops, pair, table)) sizes.push_back(key.bytes);
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{0, 1024, 256, 4096}));
}

TEST(FirstLook, MeasuresNeededOperationsAfterSmallerScouts) {
  TuneOptions options{.ops = {Op::all_reduce, Op::all_gather}, .sizes = {64}, .backends = {}, .dtypes = {DType::bf16}};
  options.exactly = {{Op::all_reduce, DType::bf16, 64 << 20},
                     {Op::all_reduce, DType::bf16, 32 << 20},
                     {Op::all_gather, DType::u8, 100}};
  std::vector<std::pair<Op, std::int64_t>> measured;
  for (const auto& key : first_look(options, pair, {})) {
    measured.emplace_back(key.op, key.bytes);
    EXPECT_EQ(key.dtype, route::class_of(key.op, DType::bf16));
  }
  EXPECT_EQ(
      measured,
      (std::vector<std::pair<Op, std::int64_t>>{
          {Op::all_gather, 100}, {Op::all_reduce, 1 << 20}, {Op::all_reduce, 32 << 20}, {Op::all_reduce, 64 << 20}}));
}

TEST(NextUnclearCell, StaysWithNeededOperations) {
  route::Table table;
  table.put(cell(Op::all_gather, {1, 2}, 1024, {timing("shm", "a", 1), timing("shm", "b", 2)}));
  table.put(cell(Op::all_gather, {1, 2}, 16384, {timing("shm", "a", 9), timing("shm", "b", 4)}));
  TuneOptions options = two_ops;
  options.exactly = {{Op::all_gather, DType::f32, 1024}, {Op::all_gather, DType::f32, 16384}};
  EXPECT_FALSE(next_unclear_cell(table, pair, options, {})) << "both are sure, and no size between is needed";
}

TEST(FirstLook, CellsOfTheOtherMemoryDoNotCount) {
  TuneOptions on_device = two_ops;
  on_device.memory = Memory::cuda;
  route::Table table;
  for (const std::int64_t bytes : {64, 256, 1024, 4096}) {
    table.put(cell(Op::all_gather, {1, 2}, bytes, {timing("shm", "a", 1), timing("shm", "b", bytes < 1000 ? 5 : 0.2)}));
  }
  const auto keys = first_look(on_device, pair, table);
  EXPECT_EQ(keys.size(), 5u);
  for (const auto& key : keys) EXPECT_EQ(key.memory, Memory::cuda);
  EXPECT_TRUE(next_unclear_cell(table, pair, two_ops, {}));
  EXPECT_FALSE(next_unclear_cell(table, pair, on_device, {})) << "no border of that memory is known";
  EXPECT_FALSE(far_behind(table, keys[1], {"shm", "b"}));
}

TEST(NextUnclearCell, LooksBetweenNeighboursThatTakeDifferentRoutes) {
  route::Table table;
  table.put(cell(Op::all_gather, {1, 2}, 1024, {timing("shm", "a", 1), timing("shm", "b", 2)}));
  table.put(cell(Op::all_gather, {1, 2}, 16384, {timing("shm", "a", 9), timing("shm", "b", 4)}));
  const auto next = next_unclear_cell(table, pair, two_ops, {});
  ASSERT_TRUE(next);
  EXPECT_EQ(next->bytes, 4096);
  EXPECT_FALSE(next_unclear_cell(table, {{1, 4}}, two_ops, {})) << "that shape is not in this job";
}

TEST(NextUnclearCell, GivesTimeToTheLeastSureAndEnds) {
  route::Table table;
  for (const double confidence : {0.8, 0.6}) {
    route::Cell unsure =
        cell(Op::all_gather, {1, 2}, confidence > 0.7 ? 64 : 256, {timing("shm", "a", 10), timing("shm", "b", 10.5)});
    unsure.confidence = confidence;
    table.put(unsure);
  }
  std::map<route::Key, int> rounds;
  int steps = 0;
  while (const auto next = next_unclear_cell(table, pair, two_ops, rounds)) {
    if (steps++ == 0) {
      EXPECT_EQ(next->bytes, 256);
    }
    ++rounds[*next];
    ASSERT_LT(steps, 100);
  }
  EXPECT_EQ(steps, 2 * most_rounds);
}

TEST(NextToConfirm, TakesEveryCellOnceTheClosestFirstUnlessOneLeadsByFar) {
  route::Table table;
  std::vector<route::Key> keys;
  for (const auto& [bytes, second] : {std::pair{64, 15.}, {256, 11.}, {1024, 25.}}) {
    table.put(cell(Op::all_gather, {1, 2}, bytes, {timing("shm", "a", 10), timing("shm", "b", second)}));
  }
  table.put(cell(Op::all_gather, {1, 2}, 4096, {timing("shm", "a", 10)}));
  for (const route::Cell& row : table.cells()) keys.push_back(row.key);
  std::map<route::Key, int> rounds;
  std::vector<std::int64_t> sizes;
  while (const auto next = next_to_confirm(table, keys, rounds)) sizes.push_back(next->bytes), ++rounds[*next];
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{256, 64}));
  EXPECT_FALSE(next_to_confirm(table, {}, {})) << "a table that is resumed is not measured again";
}

TEST(FarBehind, IsToldByTheNextSmallerSize) {
  route::Table table;
  table.put(cell(Op::all_gather, {1, 2}, 1024, {timing("shm", "a", 1), timing("shm", "b", 6)}));
  route::Key key = table.cells().front().key;
  key.bytes = 4096;
  EXPECT_TRUE(far_behind(table, key, {"shm", "b"}));
  EXPECT_FALSE(far_behind(table, key, {"shm", "a"}));
  EXPECT_FALSE(far_behind(table, key, {"shm", "unknown"}));
  table.put(cell(Op::all_gather, {1, 2}, 4096, {timing("shm", "a", 2)}));
  key.bytes = 16384;
  EXPECT_TRUE(far_behind(table, key, {"shm", "b"})) << "left out at 4096 for having been far behind";
  key.bytes = 1 << 20;
  EXPECT_FALSE(far_behind(table, key, {"shm", "b"})) << "too far away to tell";
  key.bytes = 256;
  EXPECT_FALSE(far_behind(table, key, {"shm", "b"})) << "small sizes are not judged by large ones";
}

}  // namespace
}  // namespace medley::tune
