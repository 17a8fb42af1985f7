#include "plan/request.hpp"

#include <gtest/gtest.h>

#include "plan/export.hpp"
#include "plan/helpers.hpp"

namespace medley::plan {
namespace {

TEST(StepRequest, NumbersOfTheRequestOverrideThoseOfTheLayout) {
  StepRequest request;
  request.layout = "dp=4,tp=2,micro_batch=1,dtype=f16";
  request.micro_batch = 2;
  request.global_batch = 16;
  request.seq = 512;
  Layout layout = layout_of(request);
  EXPECT_EQ(layout.dp, 4);
  EXPECT_EQ(layout.tp, 2);
  EXPECT_EQ(layout.micro_batch, 2);
  EXPECT_EQ(layout.global_batch, 16);
  EXPECT_EQ(layout.seq, 512);
  EXPECT_EQ(layout.dtype, DType::f16);
  request.dtype = "f32";
  EXPECT_EQ(layout_of(request).dtype, DType::f32);
}

TEST(StepRequest, ErrorsNameTheOptionAndTheValue) {
  StepRequest request;
  EXPECT_NE(refusal([&] { model_of(request); }).find("--model is required"), std::string::npos);
  request.framework = "caffe";
  EXPECT_NE(refusal([&] { framework_of(request); }).find("--framework 'caffe'"), std::string::npos);
  request.seq = -1;
  EXPECT_NE(refusal([&] { layout_of(request); }).find("--seq"), std::string::npos);
}

Row row(Count bytes, Count count, std::string_view why = "gradients") {
  return {
      .op = Op::all_reduce, .group = "dp", .group_size = 8, .bytes = bytes, .count = count, .module = {}, .why = why};
}

TEST(MergeSizes, RowsThatDifferInSizeAloneBecomeOne) {
  const auto merged = merge_sizes({row(100, 2), row(7, 1, "norm"), row(40, 3)});
  ASSERT_EQ(merged.size(), 2u);
  EXPECT_EQ(merged[0].row.count, 5);
  EXPECT_EQ(merged[0].smallest, 40);
  EXPECT_EQ(merged[0].largest, 100);
  EXPECT_EQ(merged[0].bytes, 2 * 100 + 3 * 40);
  EXPECT_EQ(merged[1].bytes, 7);
  EXPECT_EQ(merge_sizes({row(100, 2), row(40, 3)}, true).size(), 2u);
}

TEST(Volume, HoldsEverySumOverTheRows) {
  const Volume volume = volume_of({row(1024, 2), row(8, 6)}, 512);
  EXPECT_EQ(volume.all.count, 8);
  EXPECT_EQ(volume.all.bytes, 2 * 1024 + 6 * 8);
  EXPECT_EQ(volume.by_group.at("dp").count, 8);
  EXPECT_EQ(volume.histogram.size(), 2u);
  EXPECT_DOUBLE_EQ(volume.small.of_count, 0.75);
  const auto json = to_json(volume);
  EXPECT_EQ(json["total"]["bytes"], 2 * 1024 + 6 * 8);
  EXPECT_EQ(json["small"]["limit"], 512);
}

}  // namespace
}  // namespace medley::plan
