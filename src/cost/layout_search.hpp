// The fastest ways to spread a model over a number of GPUs: of a grid of layouts, all that fit the machine are timed. Used
// by `medley plan search` and the Python package.
#pragma once

#include "cost/plan_sweep.hpp"

namespace medley::cost {

/// What `layout` sets is not varied. `axes` give the values of a key in place of those that search_axes() tries, or of
/// one that it leaves as it is.
struct LayoutSearchRequest : SweepRequest {
  Count gpus = 0;
  std::size_t most = 10;  ///< layouts in the result
};

struct FoundLayout {
  Layout layout;
  FullestGpu fullest;
  MachineTime time;
};

struct LayoutSearchResult {
  Model model;
  Framework framework = Framework::textbook;
  std::string machine;
  Count gpus = 0, global_batch = 0;
  bool assumed_batch = false;        ///< the request named none: about 4 million tokens
  std::string fixed;                 ///< the request's layout, which all have
  std::vector<SweepAxis> axes;       ///< what was tried
  std::vector<FoundLayout> layouts;  ///< the fastest first
  std::size_t tried = 0, impossible = 0, too_large = 0;
  std::string nearest{};  ///< where none fits: the layout that needs least memory, and how much that is
};

/// Throws Error(invalid) naming the option and the value.
LayoutSearchResult search_layouts(const LayoutSearchRequest& request);
nlohmann::ordered_json to_json(const LayoutSearchResult& result);

}  // namespace medley::cost
