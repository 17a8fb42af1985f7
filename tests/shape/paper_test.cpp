#include "shape/paper.hpp"

#include <gtest/gtest.h>

namespace medley::shape {
namespace {

// The figures of the paper's own text on 256×128 tiles.
TEST(Paper, QuantisationIsThePapersArithmetic) {
  const auto fits = quantise(1792, 1792, 1, 256, 128, 108);
  EXPECT_EQ(fits.tiles, 98);
  EXPECT_EQ(fits.waves, 1);
  EXPECT_NEAR(fits.wave_efficiency, 0.907, 0.001);
  EXPECT_DOUBLE_EQ(fits.tile_efficiency, 1);
  const auto over = quantise(1793, 1793, 1, 256, 128, 108);
  EXPECT_EQ(over.tiles, 120);
  EXPECT_EQ(over.waves, 2);
  EXPECT_NEAR(over.wave_efficiency, 0.556, 0.001);
  EXPECT_NEAR(quantise(1793, 1793, 1, 256, 128, 132).wave_efficiency, 0.909, 0.001);
  EXPECT_EQ(quantise(8192, 50257, 1, 256, 128, 108).tiles, quantise(8192, 50304, 1, 256, 128, 108).tiles);
}

TEST(Paper, EveryRowHasBothPredictions) {
  const auto rows = paper_rows(GpuModel::named("h200-sxm"));
  EXPECT_GE(rows.size(), 20u);
  for (const auto& row : rows) {
    EXPECT_TRUE(row.there.has_value()) << row.what;
    EXPECT_TRUE(row.here.has_value()) << row.what;
    EXPECT_FALSE(row.unit.empty());
  }
}

}  // namespace
}  // namespace medley::shape
