// Imports the names of src/cost into medley::shape: the advisor compares the cost model's prices.
#pragma once

#include "cost/gpu_model.hpp"
#include "cost/words.hpp"

namespace medley::shape {
using namespace cost;
using cost::Attention;  // the kernels' types, not the schedules'
using cost::Gemm;
using model::product;  // not the reductions of those names
using model::sum;
}  // namespace medley::shape
