// One transformer layer, the embedding and the head as computations with their tensor, context and expert
// parallel communication in between. Frameworks differ in the rules below; what a layer computes is the same
// for all.
#pragma once

#include "plan/view.hpp"

namespace medley::plan {

/// Tokens of asynchronous operations; a wait names one.
namespace token {
inline constexpr int tensor = 1, context = 2, gradients = 3, parameters = 4, receive = 5, send = 6;
}

/// How a framework carries tensor parallelism.
struct TensorRules {
  bool whole_model = true;  ///< embedding, head and loss communicate too (all but the textbook)
  bool regather = false;    ///< SP: gather the column-parallel input again for the weight gradient (Megatron)
  bool async_backward = false;   ///< input-gradient reduction runs behind the weight gradient (Megatron)
  bool overlap_forward = false;  ///< tp_comm_overlap: SP collectives hide behind their GEMM
  bool one_reduction = false;    ///< parallel blocks add attention and MLP before one reduction (NeoX)
  bool expert_tensor = true;     ///< experts are cut over tp: gather tokens before, scatter after
  bool routing_traffic = true;   ///< counts and probabilities travel besides the tokens
  bool equal_ulysses = false;    ///< textbook: k and v counted as wide as q
  DType reduce_dtype =
      DType::bf16;  ///< of tensor-parallel activations on the wire (NeoX can reduce bf16 in f32)
};

class LayerWriter {
 public:
  LayerWriter(const View& view, Schedule& schedule, TensorRules rules);
  using BlockId = Schedule::BlockId;

  void forward(BlockId to, bool moe, Phase phase = Phase::forward) const;
  /// The backward pass, with the recomputation that the layout asks for in front.
  void backward(BlockId to, bool moe) const;
  void embedding_forward(BlockId to) const;
  void embedding_backward(BlockId to) const;
  void head_forward(BlockId to) const;
  void head_backward(BlockId to) const;

 private:
  // Pieces of a layer (layer.cpp), attention and its context parallelism (attention.cpp), experts
  // (experts.cpp).
  void linear(BlockId to, const Tensor& weight, Count m, Phase phase) const;
  void input_gradient(BlockId to, const Tensor& weight, Count m) const;
  void weight_gradient(BlockId to, const Tensor& weight, Count m) const;
  void enter(BlockId to, Phase phase, const char* module) const;  ///< into a column-parallel region
  void leave(BlockId to, Phase phase, const char* module) const;  ///< out of a row-parallel region
  void leave_backward(BlockId to, const char* module) const;
  void columns_backward(BlockId to, const std::vector<const Tensor*>& weights, const char* module) const;
  void attention_forward(BlockId to, Phase phase) const;
  void attention_backward(BlockId to) const;
  void core(BlockId to, Phase phase) const;
  void core_kernel(BlockId to, Phase phase, Count queries, Count keys, Count heads) const;
  void ring(BlockId to, Phase phase) const;
  void ulysses(BlockId to, Phase phase) const;
  void gathered(BlockId to, Phase phase) const;
  void mlp_forward(BlockId to, bool moe, Phase phase) const;
  void mlp_backward(BlockId to, bool moe) const;
  void experts_forward(BlockId to, Phase phase) const;
  void experts_backward(BlockId to) const;
  void dispatch(BlockId to, Phase phase, bool forward_direction) const;
  void combine(BlockId to, Phase phase, bool forward_direction) const;
  void expert_gemms(BlockId to, Phase phase) const;
  void exchange(BlockId to, Op op, Count bytes, Phase phase, const char* module, std::string_view why,
                bool hidden) const;
  void memory(BlockId to, Count bytes, Phase phase, const char* module) const;
  std::vector<const Tensor*> matrices(const std::vector<Tensor>& tensors, std::string_view prefix) const;

  const View& view_;
  Schedule& schedule_;
  TensorRules rules_;
};

}  // namespace medley::plan
