// The parameter tensors of a model in the order the frameworks register them: the single source of parameter
// counts, of gradient buckets (DDP, DeepSpeed, Megatron), of FSDP groups and of memory per GPU.
#pragma once

#include <string>
#include <vector>

#include "model/model.hpp"

namespace medley::model {

/// How tensor parallelism splits a tensor.
enum class Shard : std::uint8_t {
  none,    ///< replicated on every tensor rank (norms, biases of row-parallel layers, routers)
  column,  ///< split by output features (QKV, MLP up, vocabulary rows of the embedding)
  row,     ///< split by input features (projection, MLP down)
};

enum class Part : std::uint8_t { embedding, positions, attention, mlp, expert, norm, head };

struct Tensor {
  std::string name;  ///< as in "attention.qkv.weight"
  Part part = Part::mlp;
  Count rows = 0;  ///< dimension 0, the one FSDP2 shards
  Count columns = 1;
  Shard shard = Shard::none;
  bool matrix = true;  ///< false for biases and norms
  Count copies = 1;    ///< experts: this tensor exists once per expert
  bool tied =
      /// Shares storage with the token embedding: counted and sent only where the embedding is on another stage
      false;

  Count elements() const { return product({rows, columns, copies}, "parameters"); }
};

std::vector<Tensor> layer_tensors(const Model& model, LayerKind kind);
/// Token and position embeddings and everything before the first layer.
std::vector<Tensor> embedding_tensors(const Model& model);
/// Final norm and output head (marked tied if it is the embedding).
std::vector<Tensor> head_tensors(const Model& model);

}  // namespace medley::model
