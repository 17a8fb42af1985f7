// Time of operations that only move memory: a fixed part and a bandwidth of its own for each kind.
// Part of the GPU model.
#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "shape/gpu_model.hpp"
#include "shape/tile_model.hpp"

namespace medley::shape {

class StreamModel {
 public:
  explicit StreamModel(const TileConstants& constants);
  explicit StreamModel(const nlohmann::json& calibration);
  double us(StreamOp op, double bytes) const noexcept;

  /// The `streams` part of a calibration, from a CSV with columns op,bytes,us (others ignored) that names
  /// elementwise, layer_norm, layer_norm_backward and softmax.
  static nlohmann::json fit(const std::string& path);

 private:
  struct Line {
    double fixed_us = 0, gb_per_s = 0;
  };
  std::array<Line, 4> lines_;
};

}  // namespace medley::shape
