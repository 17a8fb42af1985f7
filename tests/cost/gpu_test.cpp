#include "cost/gpu.hpp"

#include <gtest/gtest.h>

#include <medley/error.hpp>

namespace medley::cost {
namespace {

TEST(Gpu, TableHasTheDatasheets) {
  const Gpu& h200 = find_gpu("h200-sxm");
  EXPECT_EQ(h200.sms, 132);
  EXPECT_DOUBLE_EQ(h200.hbm_gb_per_s, 4800);
  EXPECT_DOUBLE_EQ(find_gpu("b200-sxm").measured_tflops, 1745);
  EXPECT_EQ(find_gpu("v100-sxm2").full_alignment(), 8);
  EXPECT_EQ(find_gpu("a100-40-sxm").full_alignment(), 64);
  for (const Gpu& gpu : all_gpus()) {
    EXPECT_GT(gpu.sms, 0) << gpu.name;
    EXPECT_GT(gpu.bf16_tflops, 0) << gpu.name;
    EXPECT_GT(gpu.hbm_gb_per_s, 0) << gpu.name;
  }
}

TEST(Gpu, UnknownNameListsTheKnownOnes) {
  try {
    find_gpu("h300");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid);
    for (const Gpu& gpu : all_gpus()) EXPECT_NE(std::string(error.what()).find(gpu.name), std::string::npos);
  }
}

}  // namespace
}  // namespace medley::cost
