// The physical half of the GPU model: tiles, waves, split-k, alignment and roofline, with a handful of
// constants. gpu_model.cpp uses it alone for datasheet GPUs and as the base of the measured correction for
// calibrated ones.
#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <span>

#include "cost/gemm.hpp"
#include "cost/gpu.hpp"

namespace medley::cost {

/// Tiles and waves of a product, by the usual formulas of quantisation.
struct Quantisation {
  double tiles = 0;            ///< ⌈m/Tm⌉·⌈n/Tn⌉·batch·split
  double waves = 0;            ///< ⌈tiles/SMs⌉
  double tile_efficiency = 0;  ///< useful share of the tiles' area
  double wave_efficiency = 0;  ///< tiles / (waves·SMs)
};
Quantisation quantise(const Gemm& gemm, int tile_m, int tile_n, int sms, int split = 1) noexcept;

/// Which kernels the library can use, by the smallest alignment of the three matrices in bytes. 16 bytes
/// allow the newest kernels (on Hopper those that copy with TMA); below, only older and slower ones.
enum class AlignmentClass : std::uint8_t { bytes2, bytes4, bytes8, bytes16 };
AlignmentClass alignment_class(const Gemm& gemm) noexcept;

struct TileConstants {
  std::array<double, 3> tflops{};       ///< bf16, fp16, fp8: the whole GPU on large aligned tiles
  double gb_per_s = 0;                  ///< HBM
  double launch_us = 0;                 ///< of an empty kernel, back to back
  double tile_us = 0;                   ///< fill and drain of one wave of tiles
  double area_exponent = 0;             ///< a tile of area A reaches (A/32768)^exponent of the rate
  double split_us = 0;                  ///< the reduction of split-k, without its traffic
  std::array<double, 4> class_share{};  ///< share of the rate, by AlignmentClass
  double odd_output_share = 0;          ///< a further factor when C's own rows have 2-byte alignment
  double blend = 0;                     ///< p of the p-norm that combines arithmetic and memory time

  static TileConstants from_datasheet(const Gpu& gpu);
  std::array<double, 14> values() const;  ///< in the order above, for fitting
  static TileConstants from_values(std::span<const double> values);
  nlohmann::json to_json() const;
  static TileConstants from_json(const nlohmann::json& json);
};

/// The configuration that the model expects the library to use, and its time.
struct TileChoice {
  int tile_m = 0, tile_n = 0, split = 1;
  Quantisation quantisation;
  double us = 0;          ///< including launch
  double compute_us = 0;  ///< waves × tile time
  double memory_us = 0;
  double launch_us = 0;  ///< launch, fill, drain, split-k reduction
};
TileChoice choose_tile(const TileConstants& constants, int sms, const Gemm& gemm);

}  // namespace medley::cost
