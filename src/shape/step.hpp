// The time of a layer and of a training step (or one forward pass of inference) on one GPU of a layout, from
// its operators and the communication of tensor and pipeline parallelism. The advisor compares shapes by it.
#pragma once

#include <map>

#include "shape/pricer.hpp"

namespace medley::shape {

struct Step {
  std::map<plan::LayerKind, Cost> layers;  ///< of each kind of layer in the model, one micro-batch
  Cost embedding, head;
  Cost stage;  ///< the slowest pipeline stage, one micro-batch
  Count micro_batches = 1;
  Cost layer;            ///< the mean layer; for mixtures of experts, the mean routed layer
  double layer_us = 0;   ///< of that layer
  double bubble_us = 0;  ///< pipeline stages waiting for each other
  double optimizer_us = 0;
  double launch_us = 0;  ///< the GPU waits for the host to issue kernels
  double step_us = 0;
  double tokens_per_s = 0;  ///< per GPU
  double tflops = 0;        ///< per GPU: model FLOPs, as cost/flops.hpp counts them and `medley plan` prints
  double efficiency = 0;    ///< tflops over the best dense rate of the GPU
};

/// Rejects what a rank cannot hold, with the rule: heads, ffn or layers that do not divide, zero, an unknown
/// mode. Fills the layout's defaults (sequence, global batch; with a pipeline, four micro-batches per stage).
void check(const Model& model, Workload& work);

/// Time of one step. `work` must have passed check().
Step step_time(Pricer& pricer, const Model& model, const Workload& work);

/// Parameters of one rank of the fullest stage.
Count parameters_per_rank(const Model& model, const Layout& layout);

}  // namespace medley::shape
