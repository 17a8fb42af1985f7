#include "cost/tile_model.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace medley::cost {
namespace {

Gemm square(std::int64_t size) { return {.m = size, .n = size, .k = size}; }

TEST(Quantisation, ReproducesThePublishedWaves) {
  const int a100 = find_gpu("a100-40-sxm").sms, h100 = find_gpu("h100-sxm").sms;
  const Quantisation even = quantise(square(1792), 256, 128, a100);
  EXPECT_EQ(even.tiles, 98);
  EXPECT_EQ(even.waves, 1);
  EXPECT_NEAR(even.wave_efficiency, 0.907, 0.001);
  EXPECT_DOUBLE_EQ(even.tile_efficiency, 1);
  const Quantisation odd = quantise(square(1793), 256, 128, a100);
  EXPECT_EQ(odd.tiles, 120);
  EXPECT_EQ(odd.waves, 2);
  EXPECT_NEAR(odd.wave_efficiency, 0.556, 0.001);
  EXPECT_EQ(quantise(square(1793), 256, 128, h100).waves, 1);
  EXPECT_NEAR(quantise(square(1793), 256, 128, h100).wave_efficiency, 0.909, 0.001);
}

TEST(Quantisation, CannotTellVocabulariesApartSoAlignmentMust) {
  const Gemm odd = linear_forward("logits", 4096, 2048, 50257), round = linear_forward("logits", 4096, 2048, 50304);
  EXPECT_EQ(quantise(odd, 256, 128, 132).tiles, quantise(round, 256, 128, 132).tiles);
  EXPECT_EQ(alignment_class(odd), AlignmentClass::bytes2);
  EXPECT_EQ(alignment_class(round), AlignmentClass::bytes16);
}

TEST(TileModel, SplitsKWhereTilesAreFew) {
  const auto constants = TileConstants::from_datasheet(find_gpu("h200-sxm"));
  EXPECT_GT(choose_tile(constants, 132, {.m = 256, .n = 256, .k = 65536}).split, 1);
  EXPECT_EQ(choose_tile(constants, 132, square(8192)).split, 1);
}

TEST(TileModel, ConstantsSurviveJsonAndTheFitsOrder) {
  const auto constants = TileConstants::from_datasheet(find_gpu("a100-80-sxm"));
  const auto values = constants.values();
  EXPECT_EQ(TileConstants::from_values(values).values(), values);
  EXPECT_EQ(TileConstants::from_json(constants.to_json()).values(), values);
}

}  // namespace
}  // namespace medley::cost
