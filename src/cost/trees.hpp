// Gradient-boosted regression trees: the correction that a measured sweep adds to the physical GPU model.
// Fitted by calibration (fit.cpp), stored in the calibration file, evaluated by gpu_model.cpp.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

namespace medley::cost {

struct TreeOptions {
  int trees = 300;
  int leaves = 32;        ///< per tree, grown best first
  int least_rows = 12;    ///< per leaf, so that one odd measurement makes no rule
  double rate = 0.08;     ///< the share of each tree that is added
  double shrink = 2.0;    ///< rows of zero correction mixed into every leaf
  double outlier = 0.25;  ///< larger residuals count with their sign only (Huber)
};

class Trees {
 public:
  Trees() = default;
  /// Fits rows (each of `width` features, stored row after row) to targets. Deterministic.
  static Trees fit(std::span<const float> rows, std::size_t width, std::span<const double> targets,
                   const TreeOptions& options);
  double predict(std::span<const float> features) const;
  bool empty() const noexcept { return starts_.empty(); }

  nlohmann::json to_json() const;
  static Trees from_json(const nlohmann::json& json);  ///< throws medley::Error (invalid) when malformed

 private:
  friend class TreeGrower;
  /// An inner node sends features[feature] < threshold left (the next node) and other rows to `right`; a leaf
  /// has feature −1 and its value in `threshold`.
  struct Node {
    std::int16_t feature = -1;
    std::uint16_t right = 0;  ///< counted from the tree's first node
    float threshold = 0;
  };
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> starts_;  ///< each tree's first node
};

}  // namespace medley::cost
