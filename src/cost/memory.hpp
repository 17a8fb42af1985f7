// Memory of one GPU: parameters, gradients, optimizer state, activations, and what the libraries take
// besides. Used by `medley plan`, the advisor and searches that must skip layouts that do not fit.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cost/words.hpp"
#include "plan/framework.hpp"

namespace medley::cost {

struct Memory {
  Count parameters = 0, gradients = 0, optimizer = 0;
  Count activations = 0;  ///< with the logits; in inference the cache of keys and values
  Count total() const { return sum(sum(parameters, gradients), sum(optimizer, activations), "memory"); }
};

/// Bytes at the fullest moment of a step, as the framework's allocator counts them.
Memory memory_per_gpu(const Model& model, const Layout& layout, Framework framework, Count rank);
nlohmann::ordered_json to_json(const Memory& memory);

/// The rank that holds most, over all pipeline stages, and what it holds.
struct FullestGpu {
  Count rank = 0;
  Memory memory;
};
FullestGpu fullest_gpu(const Model& model, const Layout& layout, Framework framework);

/// Bytes a job's allocator can hand out of a GPU's `bytes`: the CUDA context, NCCL's buffers, cuBLAS's
/// workspace and fragmentation take the rest, about 6 % of 80 GB.
double usable_memory(double bytes);
/// One sentence: whether it fits, by what margin, and what fills it most.
std::string fit_sentence(const Memory& memory, double gpu_bytes);

}  // namespace medley::cost
