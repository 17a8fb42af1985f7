// Memory of one GPU: parameters, gradients, optimizer state, activations, and the libraries' own. Used by
// `medley plan`, the advisor and searches that skip layouts that do not fit.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cost/words.hpp"
#include "plan/framework.hpp"

namespace medley::cost {

struct Memory {
  Count parameters = 0, gradients = 0, optimizer = 0;
  Count activations = 0;  ///< including logits; in inference, the cache of keys and values
  Count total() const { return sum(sum(parameters, gradients), sum(optimizer, activations), "memory"); }
};

/// Peak bytes of a step, as the framework's allocator counts them.
Memory memory_per_gpu(const Model& model, const Layout& layout, Framework framework, Count rank);
nlohmann::ordered_json to_json(const Memory& memory);

/// The rank with the highest peak over all pipeline stages, and its memory.
struct FullestGpu {
  Count rank = 0;
  Memory memory;
};
FullestGpu fullest_gpu(const Model& model, const Layout& layout, Framework framework);

/// Bytes of a GPU's `bytes` that a job's allocator can use: the CUDA context, NCCL's buffers, cuBLAS's
/// workspace and fragmentation take the rest, about 6 % of 80 GB.
double usable_memory(double bytes);

/// Bytes of a GPU's memory in data sheets' GB, which are GiB: an H200 of 141 GB has 150.8e9 bytes.
constexpr double gpu_memory_bytes(double gb) { return gb * 1024 * 1024 * 1024; }
/// One clause: how much of what is usable, by what margin, and what takes the most.
std::string fit_sentence(const Memory& memory, double gpu_bytes);

}  // namespace medley::cost
