#include "cost/tile_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

namespace medley::cost {
namespace {

struct Tile {
  int m, n;
};

/// The tiles that cuBLAS picked for 98 % of the products of the H200 sweep, by kernel family, and their
/// mirror images.
constexpr std::array<Tile, 30> tma_tiles{{{192, 192}, {256, 128}, {320, 128}, {128, 256}, {192, 128}, {128, 192},
                                          {160, 256}, {256, 160}, {128, 160}, {160, 128}, {128, 128}, {96, 128},
                                          {128, 96},  {64, 128},  {128, 64},  {96, 64},   {64, 96},   {64, 64},
                                          {64, 256},  {256, 64},  {32, 64},   {64, 32},   {64, 48},   {64, 24},
                                          {64, 16},   {64, 8},    {16, 64},   {8, 64},    {224, 128}, {128, 32}}};
constexpr std::array<Tile, 9> older_tiles{
    {{256, 128}, {128, 256}, {128, 128}, {64, 256}, {256, 64}, {128, 64}, {64, 128}, {64, 64}, {32, 32}}};
constexpr std::array<int, 9> splits{1, 2, 3, 4, 6, 8, 12, 16, 32};

}  // namespace

Quantisation quantise(const Gemm& g, int tile_m, int tile_n, int sms, int split) noexcept {
  const double down = std::ceil(double(g.m) / tile_m), across = std::ceil(double(g.n) / tile_n);
  Quantisation q;
  q.tiles = down * across * double(g.batch) * split;
  q.waves = std::ceil(q.tiles / sms);
  q.tile_efficiency = double(g.m) * double(g.n) / (down * tile_m * across * tile_n);
  q.wave_efficiency = q.tiles / (q.waves * sms);
  return q;
}

AlignmentClass alignment_class(const Gemm& g) noexcept {
  const auto alignment = g.alignment();
  const int bytes = std::min({alignment.a * g.element_bytes(), alignment.b * g.element_bytes(), alignment.c * 2});
  return bytes >= 16  ? AlignmentClass::bytes16
         : bytes >= 8 ? AlignmentClass::bytes8
         : bytes >= 4 ? AlignmentClass::bytes4
                      : AlignmentClass::bytes2;
}

TileConstants TileConstants::from_datasheet(const Gpu& gpu) {
  // Power and clocks limit real GEMMs to about 80 % of the datasheet and copies to about 90 %: measured on
  // H100, H200, A100 and B200.
  const double dense = gpu.measured_tflops > 0 ? gpu.measured_tflops : 0.8 * gpu.bf16_tflops;
  // The H200's share of its rate by alignment. Before TMA (V100, A100) misaligned rows cost less: the
  // co-design paper measured a score throughput of 95, 150 and 205 TFLOP/s.
  const bool tma = gpu.tma();
  const std::array<double, 4> share = tma ? std::array{0.18, 0.30, 0.30, 1.0} : std::array{0.45, 0.72, 0.75, 1.0};
  return {.tflops = {dense, dense, 2 * dense},
          .gb_per_s = 0.9 * gpu.hbm_gb_per_s,
          .launch_us = 2.5,
          .tile_us = 0.7,
          .area_exponent = 0.25,
          .split_us = 1.0,
          .class_share = share,
          .odd_output_share = tma ? 0.7 : 1.0,
          .blend = 4};
}

std::array<double, 14> TileConstants::values() const {
  return {tflops[0], tflops[1],      tflops[2],      gb_per_s,       launch_us,      tile_us,          area_exponent,
          split_us,  class_share[0], class_share[1], class_share[2], class_share[3], odd_output_share, blend};
}

TileConstants TileConstants::from_values(std::span<const double> v) {
  return {.tflops = {v[0], v[1], v[2]},
          .gb_per_s = v[3],
          .launch_us = v[4],
          .tile_us = v[5],
          .area_exponent = v[6],
          .split_us = v[7],
          .class_share = {v[8], v[9], v[10], v[11]},
          .odd_output_share = v[12],
          .blend = v[13]};
}

nlohmann::json TileConstants::to_json() const {
  return {{"tflops", tflops},
          {"gb_per_s", gb_per_s},
          {"launch_us", launch_us},
          {"tile_us", tile_us},
          {"area_exponent", area_exponent},
          {"split_us", split_us},
          {"class_share", class_share},
          {"odd_output_share", odd_output_share},
          {"blend", blend}};
}

TileConstants TileConstants::from_json(const nlohmann::json& j) {
  TileConstants c;
  j.at("tflops").get_to(c.tflops);
  j.at("gb_per_s").get_to(c.gb_per_s);
  j.at("launch_us").get_to(c.launch_us);
  j.at("tile_us").get_to(c.tile_us);
  j.at("area_exponent").get_to(c.area_exponent);
  j.at("split_us").get_to(c.split_us);
  j.at("class_share").get_to(c.class_share);
  j.at("odd_output_share").get_to(c.odd_output_share);
  j.at("blend").get_to(c.blend);
  return c;
}

TileChoice choose_tile(const TileConstants& c, int sms, const Gemm& g) {
  const AlignmentClass kind = alignment_class(g);
  double share = c.class_share[std::size_t(kind)];
  if (g.alignment().c == 1) share *= c.odd_output_share;
  const double sm_rate = c.tflops[std::size_t(g.type)] * 1e6 * share / sms;  // flop per microsecond
  const double traffic = g.bytes(), output = double(g.m) * double(g.n) * double(g.batch);
  TileChoice best;
  best.us = std::numeric_limits<double>::infinity();
  const auto consider = [&](Tile tile) {
    const double area = double(tile.m) * tile.n,
                 rate = sm_rate * std::pow(std::min(area / 32768, 1.0), c.area_exponent);
    for (int split : splits) {
      if (split > 1 && double(g.k) / split < 128) break;
      const Quantisation q = quantise(g, tile.m, tile.n, sms, split);
      if (split > 1 && q.waves > 2) break;
      const double compute = q.waves * 2 * area * double(g.k) / split / rate;
      const double memory = (traffic + (split > 1 ? 8.0 * output * split : 0)) / c.gb_per_s * 1e-3;
      const double launch = c.launch_us + c.tile_us * std::sqrt(q.waves) + (split > 1 ? c.split_us : 0);
      if (std::max(compute, memory) + launch >= best.us) continue;  // avoids most of the pow() calls below
      const double us = std::pow(std::pow(compute, c.blend) + std::pow(memory, c.blend), 1 / c.blend) + launch;
      if (us < best.us)
        best = {.tile_m = tile.m,
                .tile_n = tile.n,
                .split = split,
                .quantisation = q,
                .us = us,
                .compute_us = compute,
                .memory_us = memory,
                .launch_us = launch};
    }
  };
  if (kind == AlignmentClass::bytes16)
    for (Tile tile : tma_tiles) consider(tile);
  else
    for (Tile tile : older_tiles) consider(tile);
  return best;
}

}  // namespace medley::cost
