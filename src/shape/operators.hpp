// What one rank computes for a model, as the advisor's table shows it: the planner's entries for a layer, the
// embedding and the head, under the names that papers use. Used by the whole advisor.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cost/gpu_model.hpp"
#include "plan/framework.hpp"
#include "shape/words.hpp"

namespace medley::shape {

using plan::Count;
using plan::Layout;
using plan::Model;

std::string_view name(Mode mode) noexcept;
Mode parse_mode(std::string_view text);

/// The part of a step that an operator belongs to. dgrad and wgrad are the two products of a linear layer's
/// backward pass; backward is that of anything else; recompute repeats a forward; update is the optimizer's.
enum class Pass : std::uint8_t { forward, dgrad, wgrad, backward, recompute, update };
std::string_view name(Pass pass) noexcept;

/// A pass over memory: bytes read plus bytes written.
struct Stream {
  StreamOp op = StreamOp::elementwise;
  double bytes = 0;
};

struct Operator {
  std::string_view name;  ///< a literal, such as "qkv"
  Pass pass = Pass::forward;
  std::variant<Gemm, Attention, Stream> work;
  Count count = 1;    ///< equal calls in sequence
  plan::Entry entry;  ///< the schedule entry, which is priced

  std::string label() const;  ///< "qkv dgrad"
  double flops() const;       ///< of all calls; 0 for streams
};
using Operators = std::vector<Operator>;

/// Everything besides the model. The layout must have passed check() in step.hpp.
struct Workload {
  Layout layout;
  /// The framework that runs the step. The textbook's step uses PyTorch's kernels and accepts every layout.
  Framework framework = Framework::textbook;

  Count tokens() const;       ///< tokens of one micro-batch in this rank's linear layers
  Count head_tokens() const;  ///< those of them that get logits
  GemmType type() const;      ///< type of the linear layers' products
};

/// One layer and micro-batch.
Operators layer_operators(const Model& model, const Workload& work, plan::LayerKind kind);
/// Token lookup and, for learned positions, their sum.
Operators embedding_operators(const Model& model, const Workload& work);
/// Final norm, logits (split by vocabulary under tp) and, in training, the loss.
Operators head_operators(const Model& model, const Workload& work);
/// One step of Adam on the `parameters` that this rank updates.
Operators optimizer_operators(Count parameters);

/// The entries of a block including communication, as the planner writes them for one micro-batch.
struct Block {
  plan::BlockKind kind = plan::BlockKind::layer;
  plan::LayerKind layer{};  ///< of layers
  bool operator==(const Block&) const = default;
};
std::string_view name(const Block& block) noexcept;
std::vector<plan::Entry> block_entries(const Model& model, const Workload& work, const Block& block);

}  // namespace medley::shape
