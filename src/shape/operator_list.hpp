// A list of operators under construction: each call adds the forward work and, in training, its backward.
// Used by the files that know attention, MLP and head.
#pragma once

#include "plan/tensors.hpp"
#include "shape/operators.hpp"

namespace medley::shape {

class OperatorList {
 public:
  OperatorList(const Model& model, const Workload& work);

  /// The products of one weight matrix (as this rank holds it), forward and backward.
  void linear(const plan::Tensor& weight, Count tokens);
  /// A linear layer `in` → `out`, `batch` of them side by side (experts).
  void linear(std::string_view name, Count tokens, Count in, Count out, Count batch = 1);
  /// Any other product, in cuBLAS's words.
  void gemm(std::string_view name, Pass pass, Count m, Count n, Count k, Count batch, GemmLayout layout);
  /// A fused attention kernel.
  void attention(std::string_view name, const Attention& attention);
  /// A pass over memory whose backward moves `backward` bytes (0: none).
  void stream(std::string_view name, StreamOp op, double forward, double backward, Count count = 1);
  /// A chain of element-wise kernels over a tensor of `bytes`: how often it passes memory eagerly and
  /// compiled.
  struct Passes {
    double eager, compiled;
    Count kernels;  ///< run eagerly; one when compiled
  };
  void chain(std::string_view name, double bytes, Passes forward, Passes backward);

  bool training() const noexcept { return work.mode == Mode::train; }
  Operators take() { return std::move(list_); }

  // What the operators of this rank are made of.
  const Model& model;
  const Workload& work;
  Model local;   ///< widths of one tensor rank; its tensors are this rank's slices
  Count tokens;  ///< through linear layers
  double kept;   ///< tokens × hidden × bytes that norms and residuals see: split by tp when sp is on

 private:
  Operators list_;
};

/// The attention block: norm, projections, scores, output projection, residual. `layer` has the layer's local
/// tensors.
void add_attention(OperatorList& list, const std::vector<plan::Tensor>& layer);
/// The MLP block: norm, dense or routed MLP, residual.
void add_mlp(OperatorList& list, const std::vector<plan::Tensor>& layer, bool moe);

/// Bytes of an activation element; fp8 products still read and write bf16 around them.
inline constexpr double activation_bytes = 2;

}  // namespace medley::shape
