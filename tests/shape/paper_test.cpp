#include "shape/paper.hpp"

#include <gtest/gtest.h>

namespace medley::shape {
namespace {

TEST(Paper, EveryRowHasBothPredictionsAndACauseWhereTheyAreFarFromThePaper) {
  const auto rows = paper_rows(GpuModel::named("h200-sxm"));
  EXPECT_GE(rows.size(), 20u);
  for (const auto& row : rows) {
    EXPECT_TRUE(row.there.has_value()) << row.what;
    EXPECT_TRUE(row.here.has_value()) << row.what;
    EXPECT_FALSE(row.unit.empty());
    if (!row.published || !row.note.empty()) continue;
    const bool percent = row.unit.starts_with("%");
    EXPECT_NEAR(*row.there, *row.published, percent ? 10 : 0.25 * *row.published) << row.figure << ": " << row.what;
  }
}

}  // namespace
}  // namespace medley::shape
