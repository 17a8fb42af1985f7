// The axes of a grid of plans: how they are written, and what their keys set. Used by sweeps and by the search for
// layouts.
#pragma once

#include <string>
#include <vector>

#include "cost/words.hpp"

namespace medley::cost {

struct SweepAxis {
  std::string key;  ///< of the layout, of the model's shape, or "model"
  std::vector<std::string> values;
};

/// From KEY=A:B (doubling), KEY=A:B:STEP or KEY=A,B,C. Throws Error(invalid) naming the text.
SweepAxis parse_axis(const std::string& text);
/// Sets one number of a point; false for a key that is not known.
bool set_swept(Model& model, Layout& layout, const std::string& key, const std::string& value);

/// The number of points. Throws Error(invalid) for more than 200,000, or for an axis without values.
std::size_t grid_size(const std::vector<SweepAxis>& axes);
/// One value of each axis; the last axis runs fastest.
std::vector<std::string> grid_point(const std::vector<SweepAxis>& axes, std::size_t index);

}  // namespace medley::cost
