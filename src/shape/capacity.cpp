#include "shape/capacity.hpp"

#include <algorithm>

#include "cost/memory.hpp"
#include "shape/step.hpp"

namespace medley::shape {

double memory_bytes(const Model& model, const Workload& work) {
  return double(fullest_gpu(model, work.layout, work.framework).memory.total());
}

double usable_bytes(const Gpu& gpu) { return usable_memory(gpu_memory_bytes(gpu.hbm_gb)); }

bool fits(const Gpu& gpu, const Model& model, const Workload& work) {
  return memory_bytes(model, work) <= usable_bytes(gpu);
}

Count largest_micro_batch(const Gpu& gpu, const Model& model, const Workload& work, Count limit) {
  const auto holds = [&](Count micro_batch) {
    Workload changed = work;
    changed.layout.micro_batch = micro_batch;
    changed.layout.global_batch =
        plan::product({micro_batch, work.layout.dp, work.layout.micro_batches()}, "global batch");
    return fits(gpu, model, changed);
  };
  if (!holds(1)) return 0;
  Count low = 1, high = limit + 1;  // memory grows with the batch, so bisection finds the limit
  while (high - low > 1) {
    const Count middle = low + (high - low) / 2;
    (holds(middle) ? low : high) = middle;
  }
  return low;
}

Changes micro_batch_changes(const Gpu& gpu, const Model& model, const Workload& work) {
  Changes out;
  const Count now = work.layout.micro_batch, most = largest_micro_batch(gpu, model, work);
  const auto add = [&](Count micro_batch) {
    Change change{.knob = Knob::micro_batch, .was = now, .now = micro_batch, .model = model, .work = work};
    change.work.layout.micro_batch = micro_batch;
    change.work.layout.global_batch =
        plan::product({micro_batch, work.layout.dp, work.layout.micro_batches()}, "global batch");
    out.push_back(std::move(change));
  };
  for (Count micro_batch = 2 * now; micro_batch <= most; micro_batch *= 2) add(micro_batch);
  if (most > now && (out.empty() || out.back().now != most)) add(most);
  return out;
}

}  // namespace medley::shape
