#include "cost/trees.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <medley/error.hpp>
#include <nlohmann/json.hpp>
#include <numeric>

namespace medley::cost {
namespace tree_growth {

constexpr int most_bins = 128;

/// Features divided into at most 128 bins of similar population; `cuts[b]` is the smallest value of bin b +
/// 1.
struct Binned {
  std::size_t rows = 0;
  std::vector<std::vector<std::uint8_t>> columns;
  std::vector<std::vector<float>> cuts;

  Binned(std::span<const float> data, std::size_t width) : rows(data.size() / width), columns(width), cuts(width) {
    for (std::size_t f = 0; f < width; ++f) {
      std::vector<float> values(rows);
      for (std::size_t r = 0; r < rows; ++r) values[r] = data[r * width + f];
      std::ranges::sort(values);
      std::vector<float> distinct = values;
      distinct.erase(std::ranges::unique(distinct).begin(), distinct.end());
      if (distinct.size() <= most_bins) {
        for (std::size_t i = 1; i < distinct.size(); ++i) cuts[f].push_back((distinct[i - 1] + distinct[i]) / 2);
      } else {
        for (int b = 1; b < most_bins; ++b) {
          const auto above = std::ranges::lower_bound(distinct, values[rows * std::size_t(b) / most_bins]);
          if (above == distinct.begin()) continue;
          const float cut = (above[-1] + above[0]) / 2;  // between values, so that rounding it in a file does no harm
          if (cuts[f].empty() || cut > cuts[f].back()) cuts[f].push_back(cut);
        }
      }
      columns[f].resize(rows);
      for (std::size_t r = 0; r < rows; ++r)
        columns[f][r] = std::uint8_t(std::ranges::upper_bound(cuts[f], data[r * width + f]) - cuts[f].begin());
    }
  }
};

struct Split {
  double gain = 0;
  int feature = -1, bin = 0;  ///< rows of bins up to `bin` go left
};

struct Leaf {
  std::vector<std::uint32_t> rows;
  Split split;
  int left = -1, right = -1;
  double value = 0;
};

}  // namespace tree_growth
using namespace tree_growth;  // named: TreeGrower, a friend, holds them

class TreeGrower {
 public:
  TreeGrower(const Binned& data, const TreeOptions& options) : data_(data), options_(options) {}

  /// Grows one tree on `residuals`, appends it to `trees` and subtracts its share from the residuals.
  void grow(std::vector<double>& residuals, Trees& trees) {
    gradient_.resize(residuals.size());
    for (std::size_t i = 0; i < residuals.size(); ++i)
      gradient_[i] = std::clamp(residuals[i], -options_.outlier, options_.outlier);
    leaves_.assign(1, {});
    leaves_[0].rows.resize(data_.rows);
    std::iota(leaves_[0].rows.begin(), leaves_[0].rows.end(), 0u);
    leaves_[0].split = best_split(leaves_[0].rows);
    for (int count = 1; count < options_.leaves; ++count) {
      int best = -1;
      for (std::size_t i = 0; i < leaves_.size(); ++i)
        if (leaves_[i].left < 0 && leaves_[i].split.feature >= 0 &&
            (best < 0 || leaves_[i].split.gain > leaves_[std::size_t(best)].split.gain))
          best = int(i);
      if (best < 0) break;
      divide(std::size_t(best));
    }
    for (Leaf& leaf : leaves_) {
      if (leaf.left >= 0) continue;
      double sum = 0;
      for (auto r : leaf.rows) sum += gradient_[r];
      leaf.value = options_.rate * sum / (double(leaf.rows.size()) + options_.shrink);
      for (auto r : leaf.rows) residuals[r] -= double(float(leaf.value));
    }
    trees.starts_.push_back(std::uint32_t(trees.nodes_.size()));
    write(0, trees);
  }

 private:
  Split best_split(const std::vector<std::uint32_t>& rows) const {
    Split best;
    const auto least = std::size_t(options_.least_rows);
    if (rows.size() < 2 * least) return best;
    const auto score = [&](double sum, double count) { return sum * sum / (count + options_.shrink); };
    double total = 0;
    for (auto r : rows) total += gradient_[r];
    const double whole = score(total, double(rows.size()));
    for (std::size_t f = 0; f < data_.columns.size(); ++f) {
      const auto& column = data_.columns[f];
      if (data_.cuts[f].empty()) continue;
      double sums[most_bins + 1] = {};
      std::uint32_t counts[most_bins + 1] = {};
      for (auto r : rows) {
        sums[column[r]] += gradient_[r];
        ++counts[column[r]];
      }
      double left = 0;
      std::size_t count = 0;
      for (std::size_t b = 0; b < data_.cuts[f].size(); ++b) {
        left += sums[b];
        count += counts[b];
        if (count < least) continue;
        if (rows.size() - count < least) break;
        const double gain = score(left, double(count)) + score(total - left, double(rows.size() - count)) - whole;
        if (gain > best.gain + 1e-12) best = {gain, int(f), int(b)};
      }
    }
    return best;
  }

  void divide(std::size_t index) {
    Leaf left, right;
    const Split split = leaves_[index].split;
    const auto& column = data_.columns[std::size_t(split.feature)];
    for (auto r : leaves_[index].rows) (column[r] <= split.bin ? left : right).rows.push_back(r);
    left.split = best_split(left.rows);
    right.split = best_split(right.rows);
    leaves_[index].rows.clear();
    leaves_[index].left = int(leaves_.size());
    leaves_[index].right = int(leaves_.size()) + 1;
    leaves_.push_back(std::move(left));
    leaves_.push_back(std::move(right));
  }

  void write(std::size_t index, Trees& trees) const {
    const Leaf& leaf = leaves_[index];
    const std::size_t at = trees.nodes_.size();
    if (leaf.left < 0) {
      trees.nodes_.push_back({.feature = -1, .right = 0, .threshold = float(leaf.value)});
      return;
    }
    const auto f = std::size_t(leaf.split.feature);
    trees.nodes_.push_back(
        {.feature = std::int16_t(f), .right = 0, .threshold = data_.cuts[f][std::size_t(leaf.split.bin)]});
    write(std::size_t(leaf.left), trees);
    trees.nodes_[at].right = std::uint16_t(trees.nodes_.size() - trees.starts_.back());
    write(std::size_t(leaf.right), trees);
  }

  const Binned& data_;
  const TreeOptions& options_;
  std::vector<double> gradient_;
  std::vector<Leaf> leaves_;
};

Trees Trees::fit(std::span<const float> rows, std::size_t width, std::span<const double> targets,
                 const TreeOptions& options) {
  const Binned data(rows, width);
  std::vector<double> residuals(targets.begin(), targets.end());
  Trees trees;
  TreeGrower grower(data, options);
  for (int i = 0; i < options.trees; ++i) grower.grow(residuals, trees);
  return trees;
}

double Trees::predict(std::span<const float> features) const {
  double sum = 0;
  for (const std::uint32_t start : starts_) {
    const Node* tree = &nodes_[start];
    const Node* node = tree;
    while (node->feature >= 0)
      node = features[std::size_t(node->feature)] < node->threshold ? node + 1 : tree + node->right;
    sum += double(node->threshold);
  }
  return sum;
}

// Each tree is one flat array in the order of its nodes: an inner node is feature, right, threshold; a leaf
// −1, value.
nlohmann::json Trees::to_json() const {
  auto json = nlohmann::json::array();
  for (std::size_t t = 0; t < starts_.size(); ++t) {
    auto tree = nlohmann::json::array();
    const std::size_t end = t + 1 < starts_.size() ? starts_[t + 1] : nodes_.size();
    for (std::size_t i = starts_[t]; i < end; ++i) {
      tree.push_back(nodes_[i].feature);
      if (nodes_[i].feature >= 0) tree.push_back(nodes_[i].right);
      tree.push_back(
          std::stod(fmt::format("{}", nodes_[i].threshold)));  // the shortest decimal that reads back the same
    }
    json.push_back(std::move(tree));
  }
  return json;
}

Trees Trees::from_json(const nlohmann::json& json) {
  const auto malformed = [] {
    return Error(ErrorKind::invalid, "the calibration's trees are malformed: measure again");
  };
  Trees trees;
  for (const auto& flat : json) {
    trees.starts_.push_back(std::uint32_t(trees.nodes_.size()));
    for (std::size_t i = 0; i < flat.size();) {
      Node node;
      node.feature = flat.at(i++).get<std::int16_t>();
      if (node.feature >= 0) node.right = flat.at(i++).get<std::uint16_t>();
      node.threshold = flat.at(i++).get<float>();
      trees.nodes_.push_back(node);
    }
    const std::size_t start = trees.starts_.back(), size = trees.nodes_.size() - start;
    for (std::size_t i = 0; i < size; ++i) {  // both children of an inner node exist, so every walk ends in a leaf
      const Node& node = trees.nodes_[start + i];
      if (node.feature >= 0 && (node.right <= i + 1 || node.right >= size)) throw malformed();
    }
    if (size == 0) throw malformed();
  }
  return trees;
}

}  // namespace medley::cost
