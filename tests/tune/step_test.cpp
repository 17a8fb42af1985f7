// What a step is made of, beside its search: which of its operations share a route, the operations of the built-in mixes,
// and the sentence about a tuned step.
#include "tune/step.hpp"

#include <gtest/gtest.h>

#include "tune/mix_step.hpp"
#include "tune/step_report.hpp"

namespace medley::tune {
namespace {

TEST(StepReport, SaysWhatIsNotSettledWhatItFellBackToAndHowLongItNeeds) {
  route::TunedStep step;
  step.libraries = {{"mpi", 100, 99, 101, 20}, {"ucx", 120, 119, 121, 20}};
  step.library = "mpi", step.settled = false, step.needed_s = 70;
  EXPECT_EQ(
      conclusion(step),
      "no mix was surely faster in this time, so auto is mpi, the best library so far; not settled: --seconds 70 would");
  step.library = "", step.gain = 1.2, step.gain_low = 1.1, step.gain_high = 1.3;
  EXPECT_EQ(
      conclusion(step),
      "the mix is 1.20x as fast as mpi, the best library (95 % interval 1.10 to 1.30); not settled: --seconds 70 would");
  step.settled = true, step.needed_s = 0;
  EXPECT_EQ(conclusion(step), "the mix is 1.20x as fast as mpi, the best library (95 % interval 1.10 to 1.30)");
}

TEST(StepSlots, SizesNearEachOtherShareARouteAndMessagesTakeOne) {
  const route::Shape two{1, 2}, wide{2, 2};
  const auto slot_list = slots_of({{Op::all_reduce, DType::f32, 4096, two},
                                   {Op::all_reduce, DType::f32, 8192, two},
                                   {Op::all_reduce, DType::f32, 1 << 20, two},
                                   {Op::all_reduce, DType::bf16, 4096, two},
                                   {Op::all_reduce, DType::f32, 4096, wide},
                                   {Op::send, DType::f32, 8, two},
                                   {Op::recv, DType::f32, 1 << 20, two},
                                   {Op::all_to_allv, DType::f32, 8, two},
                                   {Op::all_to_allv, DType::f32, 1 << 20, two}});
  ASSERT_EQ(slot_list.size(), 6u);  // two sizes of f32, one of bf16, one of another shape, messages, all_to_allv
  std::vector<Choice> routes;
  for (std::size_t i = 0; i < slot_list.size(); ++i) routes.push_back({std::to_string(i), ""});
  const StepRoutes look_up(slot_list, routes);
  const auto route = [&](Op op, DType dtype, std::int64_t bytes, route::Shape shape) {
    return look_up.of(op, dtype, bytes, shape).backend;
  };
  EXPECT_EQ(route(Op::all_reduce, DType::f32, 4096, two), route(Op::all_reduce, DType::f64, 8192, two));
  EXPECT_NE(route(Op::all_reduce, DType::f32, 4096, two), route(Op::all_reduce, DType::f32, 1 << 20, two));
  EXPECT_NE(route(Op::all_reduce, DType::f32, 4096, two), route(Op::all_reduce, DType::bf16, 4096, two));
  EXPECT_NE(route(Op::all_reduce, DType::f32, 4096, two), route(Op::all_reduce, DType::f32, 4096, wide));
  EXPECT_EQ(route(Op::send, DType::f32, 8, two), route(Op::recv, DType::u8, 1 << 20, two));
  EXPECT_EQ(route(Op::all_to_allv, DType::f32, 8, two), route(Op::all_to_allv, DType::f32, 1 << 20, two));
  EXPECT_THROW(look_up.of(Op::barrier, DType::u8, 0, two), std::exception);
}

TEST(StepSlots, APairIsForSlotsWhoseCommsAreAllInBlocks) {
  const route::Shape wide{2, 2};
  const auto list = slots_of({{Op::all_reduce, DType::f32, 4096, wide},
                              {Op::all_reduce, DType::f32, 8192, wide, 1, false},
                              {Op::all_reduce, DType::f32, 1 << 20, wide}});
  ASSERT_EQ(list.size(), 2u);
  EXPECT_FALSE(takes(list[0].shape, list[0].in_blocks, "shm+mpi"));
  EXPECT_TRUE(takes(list[0].shape, list[0].in_blocks, "mpi"));
  EXPECT_TRUE(takes(list[1].shape, list[1].in_blocks, "shm+mpi"));
  EXPECT_FALSE(takes({1, 2}, false, "shm+mpi"));
}

TEST(MixOperations, CountTheRanksThereAre) {
  for (const StepOperation& one : operations_of_mix("moe", {0, 0, 1})) {  // of shape 2 x 2, with three ranks
    EXPECT_EQ(one.count % 3, 0) << name(one.op);
    EXPECT_EQ(one.bytes % 3, 0) << name(one.op);
    EXPECT_FALSE(one.in_blocks);
  }
  EXPECT_TRUE(operations_of_mix("moe", {0, 0, 1, 1}).front().in_blocks);
}

}  // namespace
}  // namespace medley::tune
