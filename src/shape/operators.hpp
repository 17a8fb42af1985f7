// What one rank computes for a model: the map from a transformer's shape to matrix products, fused attention
// and memory-bound passes. The advisor prices the list; it is the one place that knows which extents a shape
// leads to.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "plan/layout.hpp"
#include "plan/model.hpp"
#include "shape/gpu_model.hpp"

namespace medley::shape {

using plan::Count;
using plan::Layout;
using plan::Model;

/// What the model is doing. Prefill and decode run forward only; decode runs one new token of each sequence
/// against a cache of `seq` tokens. Both need logits of the last token alone.
enum class Mode : std::uint8_t { train, prefill, decode };
std::string_view name(Mode mode) noexcept;
Mode parse_mode(std::string_view text);

/// Where in a step an operator stands. dgrad and wgrad are the two products of a linear layer's backward
/// pass; backward is that of anything else; recompute repeats a forward; update is the optimizer's.
enum class Pass : std::uint8_t { forward, dgrad, wgrad, backward, recompute, update };
std::string_view name(Pass pass) noexcept;

/// A pass over memory: bytes read plus written.
struct Stream {
  StreamOp op = StreamOp::elementwise;
  double bytes = 0;
};

struct Operator {
  std::string_view name;  ///< a literal, such as "qkv"
  Pass pass = Pass::forward;
  std::variant<Gemm, Attention, Stream> work;
  Count count = 1;                                  ///< equal calls, one after another
  AttentionKernel kernel = AttentionKernel::flash;  ///< fused attention only

  std::string label() const;  ///< "qkv dgrad"
  double flops() const;       ///< of all calls; 0 for streams
};
using Operators = std::vector<Operator>;

/// What runs besides the model. The layout must have passed plan::check.
struct Workload {
  Layout layout;
  Mode mode = Mode::train;
  GemmType type = GemmType::bf16;
  /// Chains of element-wise work run as one kernel, as torch.compile or Megatron's fused kernels make them;
  /// otherwise each is a pass over memory of its own, as PyTorch runs them eagerly.
  bool compiled = false;
  AttentionKernel kernel = AttentionKernel::flash;  ///< where the layout's attention is fused

  Count tokens() const;       ///< of one micro-batch that pass through this rank's linear layers
  Count head_tokens() const;  ///< of those, the ones that get logits
};

/// One layer and micro-batch; `moe` says whether it routes to experts.
Operators layer_operators(const Model& model, const Workload& work, bool moe);
/// Token lookup and, for learned positions, their sum.
Operators embedding_operators(const Model& model, const Workload& work);
/// Final norm, logits (split by vocabulary under tp) and, in training, the loss.
Operators head_operators(const Model& model, const Workload& work);
/// One step of Adam on the `parameters` that this rank updates.
Operators optimizer_operators(Count parameters);

}  // namespace medley::shape
