// What one rank computes for a model, as the table of the advisor shows it: the entries that the planner
// writes for a layer, the embedding and the head, by the names that papers use. Used by everything in the
// advisor.
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
  Count count = 1;    ///< equal calls, one after another
  plan::Entry entry;  ///< of the schedule: what is priced

  std::string label() const;  ///< "qkv dgrad"
  double flops() const;       ///< of all calls; 0 for streams
};
using Operators = std::vector<Operator>;

/// What runs besides the model. The layout must have passed check() in step.hpp.
struct Workload {
  Layout layout;
  /// Whose step it is. The textbook's has PyTorch's kernels and takes every layout.
  Framework framework = Framework::textbook;

  Count tokens() const;       ///< of one micro-batch that pass through this rank's linear layers
  Count head_tokens() const;  ///< of those, the ones that get logits
  GemmType type() const;      ///< of the products of linear layers
};

/// One layer and micro-batch.
Operators layer_operators(const Model& model, const Workload& work, plan::LayerKind kind);
/// Token lookup and, for learned positions, their sum.
Operators embedding_operators(const Model& model, const Workload& work);
/// Final norm, logits (split by vocabulary under tp) and, in training, the loss.
Operators head_operators(const Model& model, const Workload& work);
/// One step of Adam on the `parameters` that this rank updates.
Operators optimizer_operators(Count parameters);

/// The entries of a block with its communication, as the planner writes them for one micro-batch.
struct Block {
  plan::BlockKind kind = plan::BlockKind::layer;
  plan::LayerKind layer{};  ///< of layers
  bool operator==(const Block&) const = default;
};
std::string_view name(const Block& block) noexcept;
std::vector<plan::Entry> block_entries(const Model& model, const Workload& work, const Block& block);

}  // namespace medley::shape
