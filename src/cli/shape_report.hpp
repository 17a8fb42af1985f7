// How `medley shape` shows its report on one model.
#pragma once

#include "shape/report.hpp"

namespace medley::cli {

void print_shape_report(const shape::ShapeReport& report);

}  // namespace medley::cli
