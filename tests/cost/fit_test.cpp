#include "cost/fit.hpp"

#include <gtest/gtest.h>

#include <medley/error.hpp>
#include <nlohmann/json.hpp>

#include "cost/calibration.hpp"
#include "cost/tile_model.hpp"

namespace medley::cost {
namespace {

const std::vector<MeasuredGemm>& sweep() {
  static const std::vector<MeasuredGemm> samples = read_sweep(MEDLEY_H200_SWEEP);
  return samples;
}

struct Halves {
  std::vector<MeasuredGemm> seen, unseen;
};
Halves halves() {
  Halves halves;
  for (const auto& sample : sweep()) (held_out(sample.gemm) ? halves.unseen : halves.seen).push_back(sample);
  return halves;
}

TEST(Fit, HeldOutHalfIsAHalf) {
  const Halves split = halves();
  EXPECT_NEAR(double(split.seen.size()) / double(sweep().size()), 0.5, 0.03);
}

// The model's guarantee: within 6 % on average on what it was not fitted to, including misaligned shapes.
TEST(Fit, PredictsTheHeldOutHalfOfTheH200Sweep) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "fitting to 8000 products takes minutes under a sanitizer";
#endif
  const Gpu& gpu = find_gpu("h200-sxm");
  const Halves split = halves();
  const GpuModel model(gpu, calibrate(gpu, split.seen, describe_sweep(MEDLEY_H200_SWEEP)).dump());
  const Accuracy all = accuracy(model, split.unseen);
  EXPECT_LT(all.mape, 0.06);
  EXPECT_LT(all.p95, 0.20);
  std::vector<double> roofline;
  for (const auto& sample : split.unseen) roofline.push_back(model.roofline_us(sample.gemm));
  EXPECT_GT(accuracy(roofline, split.unseen).mape, 3 * all.mape);
}

TEST(Fit, ShippedCalibrationMatchesTheShippedSweep) {
  const Accuracy shipped = accuracy(GpuModel::named("h200-sxm"), sweep());
  EXPECT_LT(shipped.mape, 0.05);
  EXPECT_LT(shipped.p95, 0.15);
}

TEST(Fit, FewProductsAreRefusedAndAFewHundredCalibrate) {
  const Gpu& gpu = find_gpu("h200-sxm");
  EXPECT_THROW(fit_gemms(gpu, std::span(sweep()).first(50)), Error);
  std::vector<MeasuredGemm> some;
  for (std::size_t i = 0; i < sweep().size(); i += 40) some.push_back(sweep()[i]);
  const GpuModel quick(gpu, calibrate(gpu, some, {}).dump());
  EXPECT_LT(accuracy(quick, some).mape, accuracy(GpuModel(gpu), some).mape);
}

TEST(Fit, SweepWithoutTimesIsRefused) { EXPECT_THROW(read_sweep(MEDLEY_SHAPE_TESTS "/CMakeLists.txt"), Error); }

}  // namespace
}  // namespace medley::cost
