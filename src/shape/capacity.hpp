// Whether a shape fits a GPU's memory, and the largest micro-batch that does. Used by the advisor, so that
// its advice on the micro-batch is a number.
#pragma once

#include "cost/gpu.hpp"
#include "shape/changes.hpp"
#include "shape/words.hpp"

namespace medley::shape {

/// Peak bytes over all GPUs: training state and activations, or weights and the cache of keys and values.
double memory_bytes(const Model& model, const Workload& work);
/// Bytes a job can use: the datasheet minus context, library workspaces and fragmentation.
double usable_bytes(const Gpu& gpu);
bool fits(const Gpu& gpu, const Model& model, const Workload& work);

/// The largest micro-batch that fits, at most `limit`; 0 when not even one sequence fits.
Count largest_micro_batch(const Gpu& gpu, const Model& model, const Workload& work, Count limit = 4096);
/// Two, four … times the micro-batch as far as they fit, and the largest that fits.
Changes micro_batch_changes(const Gpu& gpu, const Model& model, const Workload& work);

}  // namespace medley::shape
