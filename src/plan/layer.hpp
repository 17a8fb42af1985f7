// One transformer layer, the embedding and the head as computations with their tensor, context and expert
// parallel communication. Frameworks differ in the rules below; the computation of a layer is the same for
// all.
#pragma once

#include <optional>

#include "plan/view.hpp"

namespace medley::plan {

/// Tokens of asynchronous operations; a wait names one.
namespace token {
inline constexpr int tensor = 1, context = 2, gradients = 3, parameters = 4, receive = 5, send = 6, experts = 7;
inline constexpr int first_bucket = 64;  ///< from here on: one per bucket
}  // namespace token

/// A chain of element-wise kernels: its memory passes and its number of kernels when PyTorch runs it eagerly,
/// and its passes when it is fused.
struct Passes {
  double eager, fused;
  int kernels;
  int fused_kernels = 1;
};

/// How a framework implements tensor parallelism, and the loss on its shards.
struct TensorRules {
  bool whole_model = true;        ///< embedding, head and loss also communicate (in all but the textbook)
  bool regather = false;          ///< SP: gather the column-parallel input again for the weight gradient (Megatron)
  bool async_backward = false;    ///< input-gradient reduction overlaps the weight gradient (Megatron)
  bool overlap_forward = false;   ///< tp_comm_overlap: SP collectives hide behind their GEMM
  bool overlap_experts = false;   ///< token exchanges hide behind another micro-batch's computation (Megatron)
  bool one_reduction = false;     ///< parallel blocks add attention and MLP before one reduction (NeoX)
  bool expert_tensor = true;      ///< experts are sharded over tp: gather tokens before, scatter after
  bool drops_duplicates = false;  ///< DeepSpeed-MoE: experts whole on every tensor rank, each routes 1/t of the tokens
  bool eager_experts = false;     ///< biases and clamps of experts are separate eager kernels (Megatron)
  bool routing_traffic = true;    ///< counts and probabilities are sent in addition to the tokens
  bool equal_ulysses = false;     ///< textbook: k and v count as wide as q
  /// Megatron all_reduces the embedding when learned positions are added to it, with or without sequence
  /// parallelism.
  bool reduces_learned_positions = false;
  enum class LossOrder : std::uint8_t { megatron, dtensor } loss_order = LossOrder::megatron;
  bool shard_loss = true;  ///< the cross entropy reduces over vocabulary shards; else logits are gathered (DTensor)
  /// Bytes per logit of the loss: cast to f32, log-softmax, and their gradients, of which the label's fills a
  /// tensor with zeros first. In eager mode, the softmax reads rows longer than its registers once more.
  Passes loss_forward{18, 6, 3}, loss_backward{26, 6, 4};
  /// Of the rotation, per element of queries and keys: x·cos + rotate(x)·sin is two products, a rotated copy
  /// and a sum.
  Passes rotary{9, 2, 4};
  /// Weight gradients are added to main gradients of this type by the product itself (Megatron's
  /// gradient_accumulation_fusion).
  std::optional<DType> main_gradients;
  DType reduce_dtype = DType::bf16;  ///< of tensor-parallel activations on the wire (NeoX can reduce bf16 in f32)
};

class LayerWriter {
 public:
  LayerWriter(const View& view, Schedule& schedule, TensorRules rules);
  using BlockId = Schedule::BlockId;

  void forward(BlockId to, LayerKind kind, Phase phase = Phase::forward) const;
  /// The backward pass, preceded by the recomputation that the layout asks for.
  void backward(BlockId to, LayerKind kind) const;
  void embedding_forward(BlockId to) const;
  void embedding_backward(BlockId to) const;
  void head_forward(BlockId to) const;
  void head_backward(BlockId to) const;

 private:
  // Parts of a layer (layer.cpp), embedding and head (ends.cpp), attention and its context parallelism
  // (attention.cpp), experts (experts.cpp).
  /// `parts`: the chunks in which the product overlaps its collective.
  void linear(BlockId to, const Tensor& weight, Count m, Phase phase, Count parts = 1) const;
  void cast(BlockId to, const Tensor& weight, Count elements,
            Phase phase) const;  ///< to fp8, where products run in fp8
  void input_gradient(BlockId to, const Tensor& weight, Count m, Count parts = 1) const;
  void weight_gradient(BlockId to, const Tensor& weight, Count m) const;
  void enter(BlockId to, Phase phase, const char* module) const;  ///< into a column-parallel region
  void leave(BlockId to, Phase phase, const char* module) const;  ///< out of a row-parallel region
  void leave_backward(BlockId to, const char* module) const;
  void columns_backward(BlockId to, const std::vector<const Tensor*>& weights, const char* module) const;
  void row_forward(BlockId to, const std::vector<const Tensor*>& weights, Phase phase, const char* module) const;
  void row_backward(BlockId to, const std::vector<const Tensor*>& weights, const char* module) const;
  void attention_forward(BlockId to, Phase phase, LayerKind kind) const;
  void attention_backward(BlockId to, LayerKind kind) const;
  void core(BlockId to, Phase phase, Span span) const;
  void attend(BlockId to, Phase phase, const Attention& attention) const;
  void core_kernel(BlockId to, Phase phase, Span span, Count queries, Count keys, Count heads) const;
  void ring(BlockId to, Phase phase, Span span) const;
  void ulysses(BlockId to, Phase phase, Span span) const;
  void gathered(BlockId to, Phase phase, Span span) const;
  void mlp_forward(BlockId to, bool moe, Phase phase) const;
  void mlp_backward(BlockId to, bool moe) const;
  void experts_forward(BlockId to, Phase phase) const;
  void experts_backward(BlockId to) const;
  std::string_view expert_tensor_group() const;
  void dispatch(BlockId to, Phase phase, bool forward_direction) const;
  void combine(BlockId to, Phase phase, bool forward_direction) const;
  bool exchanges_early(bool moe) const;
  void exchange_early(BlockId to, Phase phase) const;
  void send_tokens(BlockId to, Phase phase, bool forward_direction, bool hidden) const;
  void return_tokens(BlockId to, Phase phase, bool forward_direction, bool hidden) const;
  void expert_gemms(BlockId to, Phase phase) const;
  void expert_activation(BlockId to, Count tokens, Count width, Phase phase) const;
  void expert_biases(BlockId to, Count tokens, Count local, Phase phase) const;
  void recompute_modules(BlockId to, LayerKind kind) const;
  void recompute_per_op(BlockId to, LayerKind kind) const;
  void route(BlockId to, Phase phase) const;
  void permute(BlockId to, Phase phase, const char* module) const;
  void gather_dropped(BlockId to, Phase phase) const;
  void exchange(BlockId to, Op op, Count bytes, Phase phase, const char* module, std::string_view why, bool hidden,
                double tail = 0) const;
  Count ring_parts() const;
  /// One pass over memory.
  void stream(BlockId to, StreamOp op, Count bytes, Phase phase, const char* module) const;
  /// A chain of element-wise kernels over a tensor of `bytes`; fused, it is one kernel.
  void chain(BlockId to, Count bytes, Passes passes, Phase phase, const char* module) const;
  void norm(BlockId to, Phase phase, const char* module) const;
  void residual(BlockId to, Phase phase, const char* module) const;
  void activation(BlockId to, Count tokens, Count width, Phase phase, const char* module) const;
  void bias_gradients(BlockId to, const std::vector<Tensor>& tensors, std::string_view prefix, Count tokens) const;
  void absorbed(BlockId to, Phase phase) const;  ///< latent attention in decode
  Count head_tokens() const;
  std::vector<const Tensor*> matrices(const std::vector<Tensor>& tensors, std::string_view prefix) const;

  const View& view_;
  Schedule& schedule_;
  TensorRules rules_;
};

}  // namespace medley::plan
