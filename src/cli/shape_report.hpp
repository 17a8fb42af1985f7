// The report of `medley shape` on one model: its operators, the layer, the step, the rules and the advice.
#pragma once

#include "cli/shape_options.hpp"

namespace medley::cli {

int report_shape(const ShapeOptions& options);

}  // namespace medley::cli
