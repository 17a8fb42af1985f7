// The words of src/cost inside medley::shape: the advisor compares what the cost model prices.
#pragma once

#include "cost/gpu_model.hpp"
#include "cost/words.hpp"

namespace medley::shape {
using namespace cost;
using cost::Attention;  // as kernels see them, not as schedules do
using cost::Gemm;
using model::product;  // not the reductions of those names
using model::sum;
}  // namespace medley::shape
