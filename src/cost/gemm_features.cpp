#include "cost/gemm_features.hpp"

#include <algorithm>
#include <cmath>

namespace medley::cost {
namespace {

constexpr double most_waves = 64;  // beyond this, quantisation no longer shows

struct Writer {
  GemmFeatures& features;
  std::size_t next = 0;
  void operator()(double value) { features[next++] = float(value); }
};

}  // namespace

GemmFeatures gemm_features(const Gemm& g, const TileChoice& choice, int sms) {
  GemmFeatures features{};
  Writer put{features};
  const double m = double(g.m), n = double(g.n), k = double(g.k), batch = double(g.batch);
  for (double extent : {m, n, k, batch, m * n * batch}) put(std::log2(extent));
  const auto alignment = g.alignment();
  for (int a : {alignment.a, alignment.b, alignment.c, alignment.least()}) put(a);
  put(double(g.layout));
  put(double(g.type));
  put(std::log2(g.flops() / g.bytes()));
  put(std::log2(choice.us));
  put(std::log2(choice.compute_us / choice.memory_us));
  for (int extent : {choice.tile_m, choice.tile_n, choice.split}) put(extent);
  put(std::min(choice.quantisation.waves, most_waves));
  put(choice.quantisation.wave_efficiency);
  put(choice.quantisation.tile_efficiency);
  for (const auto& [tile_m, tile_n] : {std::pair{256, 128}, {128, 256}, {128, 128}, {192, 192}, {320, 128}, {64, 64}}) {
    const Quantisation q = quantise(g, tile_m, tile_n, sms);
    put(std::min(q.tiles / sms, most_waves));
    put(q.wave_efficiency);
    put(q.tile_efficiency);
  }
  put(double(g.m % 256));
  put(double(g.n % 256));
  put(double(g.k % 64));
  return features;
}

}  // namespace medley::cost
