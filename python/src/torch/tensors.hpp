// Tensors as Medley buffers. What is contiguous is used where it lies; the rest goes through a contiguous
// copy. Used by every operation of the process group.
#pragma once

#include <ATen/ATen.h>
#include <medley/buffer.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <functional>
#include <vector>

namespace medley::torch {

/// How elements of a torch type travel: as `factor` elements of a Medley type each.
struct Element {
  DType dtype;
  std::int64_t factor = 1;
};
/// For operations that only move; every torch type can.
Element moved_as(at::ScalarType type);
/// For reductions; refuses types that the reduction is not defined for.
Element reduced_as(at::ScalarType type, ReduceOp op);

ReduceOp reduction(const c10d::ReduceOp& op);
/// What PREMUL_SUM asks for before the sum.
void premultiply(const at::Tensor& tensor, const c10d::ReduceOp& op);

Buffer buffer_of(const at::Tensor& contiguous, Element element);
ConstBuffer const_buffer_of(const at::Tensor& contiguous, Element element);

/// Tensors that an operation works on, and what is left to do once it is complete: copying back what was
/// staged.
class Staging {
 public:
  /// A contiguous version to read.
  at::Tensor in(const at::Tensor& tensor);
  /// A contiguous version to write, whose content reaches `tensor` in finish(); with `keep` it starts as its
  /// copy.
  at::Tensor out(const at::Tensor& tensor, bool keep = false);
  /// The same for a list laid out one after another: one flat tensor, without a copy where they already lie
  /// so.
  at::Tensor flat_in(const std::vector<at::Tensor>& tensors);
  at::Tensor flat_out(const std::vector<at::Tensor>& tensors);

  /// What to do after completion; empty when there is nothing.
  std::function<void()> finish() const;
  /// Everything that must stay alive until completion.
  const std::vector<at::Tensor>& kept() const { return kept_; }

 private:
  at::Tensor keep(at::Tensor tensor);
  std::vector<at::Tensor> kept_;
  std::vector<std::pair<at::Tensor, at::Tensor>> copies_;  ///< to, from
};

/// Refuses tensors that a collective cannot take: none, sparse ones, mixed types or devices.
void check_tensors(const char* operation, const std::vector<at::Tensor>& tensors);
/// The only tensor of a list, as c10d passes most operands.
const at::Tensor& single(const char* operation, const std::vector<at::Tensor>& tensors);

}  // namespace medley::torch
