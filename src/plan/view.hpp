// One rank's share of model and layout: its layers, its slice of every tensor, its groups. The starting point
// of every framework.
#pragma once

#include <string_view>
#include <vector>

#include "model/tensors.hpp"
#include "plan/schedule.hpp"

namespace medley::plan {

/// Consecutive layers on one rank: a pipeline stage, or one of its virtual stages.
struct Chunk {
  Count first = 0, count = 0;
  bool embedding = false, head = false;
};

/// A parameter tensor as this rank holds it (before ZeRO shards it).
struct LocalTensor {
  const Tensor* tensor = nullptr;  ///< rows and columns are already this rank's
  Count layer = -1;                ///< −1: embedding; layers(): head
  Count elements = 0;
  bool expert() const { return tensor->part == Part::expert; }
};

struct ViewOptions {
  bool pad_vocabulary = false;    ///< Megatron and NeoX pad to 128·t rows
  bool fuse_projections = false;  ///< Megatron multiplies q, k, v at once, and gate with up
  bool fuse_qkv = false;          ///< only q, k and v: common in fast PyTorch code
  /// How layers that do not divide evenly go to stages: one more each for the first stages (DeepSpeed,
  /// torchtitan), or embedding and head count as a layer (Megatron's account_for_embedding_…, NeMo). nanotron
  /// always balances stages by cost.
  enum class Uneven : std::uint8_t { first_stages, count_ends, by_cost } uneven = Uneven::first_stages;
  bool whole_experts = false;  ///< experts are not sharded over tp (DeepSpeed-MoE)
};

/// The model with the widths of one tensor rank: its tensors are the local slices. Rejects what tp cannot
/// divide.
Model local_model(Model model, const Layout& layout, bool whole_experts = false);

/// The layers of `stage`, one chunk per virtual stage.
std::vector<Chunk> chunks_of(const Model& model, const Layout& layout, int stage, const ViewOptions& options);

class View {
 public:
  View(const Model& model, const Layout& layout, Count rank, ViewOptions options = {});

  const Model model;  ///< as given, with the vocabulary padded
  const Layout layout;
  const Count rank;
  const Coordinates at;
  const Model local;  ///< widths of one tensor rank: heads/t, ffn/t, vocab/t

  Count e = 2;               ///< bytes per element
  Count sequence = 0;        ///< tokens of one sample on this rank: s/c; 1 in decode
  Count cached = 0;          ///< decode: tokens of the cache on this rank
  Count tokens = 0;          ///< of one micro-batch: b·s/c
  Count sharded_tokens = 0;  ///< between tensor-parallel regions: tokens/t with sequence parallelism
  Count micro_batches = 0;
  Count dp_group = 1;         ///< replicas of dense parameters: dp·cp
  Count expert_dp_group = 1;  ///< replicas of an expert: dp·cp·tp / (etp·ep)
  Count model_group = 1;      ///< tp·pp

  std::vector<Chunk> chunks;
  std::vector<Tensor> embedding, dense_layer, moe_layer, head;
  std::vector<Tensor> linear_layer, linear_moe_layer;  ///< of layers with linear attention, if any

  const std::vector<Tensor>& layer(LayerKind kind) const {
    if (kind.span == Span::linear) return kind.moe ? linear_moe_layer : linear_layer;
    return kind.moe ? moe_layer : dense_layer;
  }
  const std::vector<Tensor>& layer(Count index) const { return layer(model.kind(index)); }
  /// Parameters of this rank (or of one chunk) in forward order; a tied head only where the embedding is not.
  std::vector<LocalTensor> tensors() const;
  std::vector<LocalTensor> tensors(int chunk) const;
  Count activation_bytes() const { return product({tokens, model.hidden, e}, "activation"); }
  bool first_stage() const { return at.pp == 0; }
  bool last_stage() const { return at.pp == layout.pp - 1; }
  /// The rank with the same coordinates on another pipeline stage; wraps around, as interleaved stages do.
  Count stage_rank(int stage) const;
  Count local_experts() const { return model.experts / layout.ep; }
  /// Tokens times top_k that one rank routes in a micro-batch.
  Count routed_tokens() const;
};

/// Elements of all tensors, with or without those of experts.
Count elements(const std::vector<LocalTensor>& tensors, bool expert);

// Functions that make entries, so that frameworks read as lists of operations.
Entry comm(Op op, std::string_view group, Count group_size, Count bytes, DType dtype, Phase phase, std::string module,
           std::string_view why);
Entry memory_bound(Count bytes, Phase phase, std::string module);
Entry wait_for(int token, Phase phase);
/// Asynchronous until a wait with `token`.
Entry async(Entry entry, int token);

/// Adds a communication unless it has no peer or no bytes.
void add_comm(Schedule& schedule, Schedule::BlockId to, Entry entry);

}  // namespace medley::plan
