// Searches the shapes around a model for faster ones: hidden size, heads, MLP width, depth and padded
// vocabulary vary within stated bounds, and every candidate is priced. Used by `medley shape search`. Quality
// is not predicted.
#pragma once

#include <functional>
#include <vector>

#include "shape/step.hpp"

namespace medley::shape {

/// How far a candidate may be from the model, each relative to the model's own value.
struct Bounds {
  double parameters = 0.02;
  double depth = 0.20;      ///< layers
  double aspect = 0.40;     ///< hidden over layers
  double ffn_ratio = 0.20;  ///< MLP width over hidden
  Count hidden_step = 64;
  Count ffn_step = 16;  ///< per tensor rank
};

struct Candidate {
  Count hidden = 1, heads = 1, kv_heads = 1, head_dim = 1, layers = 1, ffn = 1,
        vocab = 1;        ///< ffn: of an expert, if routed
  double gain = 0;        ///< tokens per second and GPU, relative to the given model, − 1
  double parameters = 0;  ///< relative to the given model, − 1
  double tflops = 0;
  double efficiency = 0;
  double distance = 0;  ///< sum of |log| over the changed numbers: among equals, the nearest shape is reported
};

struct SearchResult {
  Candidate given;                ///< the given model
  std::vector<Candidate> pareto;  ///< no other candidate is both faster and nearer in parameters; nearest first
  Candidate fastest;              ///< of all within bounds
  Candidate best_net;             ///< fastest at equal parameters: the largest gain × parameters
  Count candidates = 0;           ///< shapes priced
  std::size_t products = 0;       ///< distinct matrix products among them
};

/// `threads` 0: one per core. The result does not depend on it. `progress` gets the hidden sizes done and their number,
/// on the calling thread; what it throws ends the search.
SearchResult search(const GpuModel& gpu, const Model& model, const Workload& work, const Bounds& bounds,
                    unsigned threads = 0, const std::function<void(std::size_t, std::size_t)>& progress = {});

/// Candidates that no other beats in both speed and distance of parameters, nearest first.
std::vector<Candidate> pareto_of(std::vector<Candidate> candidates);

/// The model with a candidate's numbers.
Model with(const Model& model, const Candidate& candidate);

}  // namespace medley::shape
