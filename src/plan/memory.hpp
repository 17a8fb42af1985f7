// Memory of one GPU: parameters, gradients, optimizer state, activations. Used by `medley plan` and by
// searches that must skip layouts that do not fit.
#pragma once

#include "plan/framework.hpp"

namespace medley::plan {

struct Memory {
  Count parameters = 0, gradients = 0, optimizer = 0, activations = 0;
  Count total() const { return sum(sum(parameters, gradients), sum(optimizer, activations), "memory"); }
};

/// Bytes at the fullest moment of a step, before allocator overhead.
Memory memory_per_gpu(const Model& model, const Layout& layout, Framework framework, Count rank);

}  // namespace medley::plan
