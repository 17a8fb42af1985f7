// Time of memory-bound operations: a fixed part and a bandwidth per kind. Part of the GPU model.
#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cost/gpu_model.hpp"
#include "cost/tile_model.hpp"

namespace medley::cost {

class StreamModel {
 public:
  explicit StreamModel(const TileConstants& constants);
  explicit StreamModel(const nlohmann::json& calibration);
  /// Another GPU's model with its bandwidth multiplied by `times`.
  StreamModel(const StreamModel& like, double times);
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

}  // namespace medley::cost
