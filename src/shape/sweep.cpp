#include "shape/sweep.hpp"

#include <algorithm>
#include <cmath>

#include "base/random.hpp"

namespace medley::shape {
namespace {

/// splitmix64: the same numbers everywhere, unlike the standard library's distributions.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() { return core::mix(state_ += 0x9e3779b97f4a7c15ull); }
  double uniform() { return double(next() >> 11) * 0x1p-53; }
  std::int64_t below(std::int64_t n) { return std::int64_t(uniform() * double(n)); }
  /// Log-uniform between low and high, then rounded to a random power of two: both odd and round sizes.
  std::int64_t extent(double low, double high) {
    const std::int64_t raw = std::int64_t(low * std::pow(high / low, uniform()));
    const std::int64_t unit = std::int64_t{1} << below(9);
    return std::max(raw >= unit ? raw / unit * unit : raw, std::int64_t{1});
  }

 private:
  std::uint64_t state_;
};

Gemm plain(Random& random) {
  return {.m = random.extent(64, 32768), .n = random.extent(64, 16384), .k = random.extent(32, 16384)};
}
Gemm skinny(Random& random) {  // decode: few tokens
  return {.m = random.extent(512, 32768), .n = 1 + random.below(128), .k = random.extent(256, 16384)};
}
Gemm batched(Random& random) {  // attention scores and values
  const std::int64_t s = random.extent(128, 4096), d = random.extent(32, 256);
  const bool score = random.below(2) == 0;
  return {.m = score ? s : d, .n = s, .k = score ? d : s, .batch = 1 + random.below(128)};
}

}  // namespace

std::vector<Gemm> calibration_gemms(std::size_t count, std::uint64_t seed) {
  constexpr double most_flops = 2e12, most_bytes = 8e9;  // a few ms each, so that a minute has thousands
  Random random(seed);
  std::vector<Gemm> gemms;
  while (gemms.size() < count) {
    const std::int64_t kind = random.below(10);
    Gemm gemm = kind < 6 ? plain(random) : kind < 8 ? skinny(random) : batched(random);
    gemm.layout = static_cast<GemmLayout>(random.below(3));
    const std::int64_t type = random.below(10);
    gemm.type = type < 8 ? GemmType::bf16 : type < 9 ? GemmType::fp16 : GemmType::fp8;
    if (gemm.type == GemmType::fp8) {  // what cuBLASLt offers on Hopper: TN, multiples of 16
      gemm.layout = GemmLayout::TN;
      for (std::int64_t* extent : {&gemm.m, &gemm.n, &gemm.k}) *extent = (*extent + 15) / 16 * 16;
    }
    if (gemm.flops() <= most_flops && gemm.bytes() <= most_bytes) gemms.push_back(gemm);
  }
  return gemms;
}

}  // namespace medley::shape
