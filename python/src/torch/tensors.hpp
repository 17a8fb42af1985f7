// Tensors as Medley buffers. Contiguous tensors are used in place; others go through a contiguous copy. Used
// by every operation of the process group.
#pragma once

#include <ATen/ATen.h>
#include <medley/buffer.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <functional>
#include <vector>

namespace medley::torch {

/// How elements of a torch type are sent: as `factor` elements of a Medley type each.
struct Element {
  DType dtype;
  std::int64_t factor = 1;
};
/// For operations that only move data, which support every torch type.
Element moved_as(at::ScalarType type);
/// For reductions; rejects types that the reduction is not defined for.
Element reduced_as(const char* operation, at::ScalarType type, ReduceOp op);

ReduceOp reduction(const c10d::ReduceOp& op);
/// The scaling of PREMUL_SUM before the sum.
void premultiply(const at::Tensor& tensor, const c10d::ReduceOp& op);

Buffer buffer_of(const at::Tensor& contiguous, Element element);
ConstBuffer const_buffer_of(const at::Tensor& contiguous, Element element);

/// The tensors of an operation, and the work left after its completion: copying back what was staged.
class Staging {
 public:
  /// A contiguous version to read.
  at::Tensor in(const at::Tensor& tensor);
  /// A contiguous version to write, copied to `tensor` in finish(); with `keep` it starts as a copy of
  /// `tensor`.
  at::Tensor out(const at::Tensor& tensor, bool keep = false);
  /// The same for a list packed into one flat tensor, without a copy if the list is already contiguous.
  at::Tensor flat_in(const std::vector<at::Tensor>& tensors);
  at::Tensor flat_out(const std::vector<at::Tensor>& tensors);

  /// The work after completion; empty when there is none.
  std::function<void()> finish() const;
  /// Everything that must stay alive until completion.
  const std::vector<at::Tensor>& kept() const { return kept_; }

 private:
  at::Tensor keep(at::Tensor tensor);
  std::vector<at::Tensor> kept_;
  std::vector<std::pair<at::Tensor, at::Tensor>> copies_;  ///< to, from
};

/// Rejects tensors that a collective cannot take: none, sparse ones, mixed types or devices.
void check_tensors(const char* operation, const std::vector<at::Tensor>& tensors);
/// The only tensor of a list, as c10d passes most operands.
const at::Tensor& single(const char* operation, const std::vector<at::Tensor>& tensors);

}  // namespace medley::torch
