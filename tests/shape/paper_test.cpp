#include "shape/paper.hpp"

#include <gtest/gtest.h>

namespace medley::shape {
namespace {

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
