// A fused collective: many tensors that one message carries, and where each of them is in the packed buffer; or many
// that travel one after the other. The engine issues it as one operation; the packed lane and the staged lane copy by
// its layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <medley/backend.hpp>
#include <memory>
#include <vector>

namespace medley::fuse {

/// Whether tensors of this operation can share a message: collectives whose parts are equal on all ranks. v-collectives
/// are routed by an agreed size each, and a barrier has no tensors.
constexpr bool fusable(Op op) {
  switch (op) {
    case Op::broadcast:
    case Op::reduce:
    case Op::all_reduce:
    case Op::gather:
    case Op::all_gather:
    case Op::scatter:
    case Op::reduce_scatter:
    case Op::all_to_all: return true;
    default: return false;
  }
}
/// Whether the input or the output has one part for each rank.
constexpr bool many_in(Op op) { return op == Op::scatter || op == Op::reduce_scatter || op == Op::all_to_all; }
constexpr bool many_out(Op op) { return op == Op::gather || op == Op::all_gather || op == Op::all_to_all; }
/// Whether this rank has an input or an output; the others ignore theirs.
constexpr bool has_in(const Call& call, int rank) {
  return (call.op != Op::broadcast && call.op != Op::scatter) || rank == call.root;
}
constexpr bool has_out(const Call& call, int rank) {
  if (call.op == Op::broadcast) return rank != call.root;
  return (call.op != Op::reduce && call.op != Op::gather) || rank == call.root;
}
/// Elements of one part of a call; the same number on all ranks.
constexpr std::int64_t part_count(const Call& call, int rank, int ranks) {
  if (!has_in(call, rank)) return many_out(call.op) ? call.out_count / ranks : call.out_count;
  return many_in(call.op) ? call.in_count / ranks : call.in_count;
}

/// The tensors of one fused message.
class MEDLEY_API Fusion {
 public:
  Fusion() = default;
  Fusion(const Fusion&) = delete;
  Fusion& operator=(const Fusion&) = delete;

  void add(const Call& call, int rank, int ranks);
  /// The call that moves all tensors, without memory; `like` is one of their calls.
  Call call_like(const Call& like, int rank, int ranks) const;
  /// The call that would move one of the message's tensors alone.
  static Call call_of(const FusedTensor& tensor, const Call& message, int ranks);
  static void set_tensor(Call& call, const FusedTensor& tensor, int ranks);
  void reserve(std::size_t tensors) { tensors_.reserve(tensors); }
  /// Its tensors travel one after the other instead of in one message.
  void make_series() { series_ = true; }
  bool is_series() const { return series_; }
  const TensorList& list() {
    list_.tensors = tensors_;
    return list_;
  }
  const std::vector<FusedTensor>& tensors() const { return tensors_; }
  /// Elements of one part of the packed buffer, which has a part of every tensor.
  std::int64_t part() const { return part_; }
  /// A number that differs between lists of different counts, for the consistency checker.
  std::uint64_t layout() const;

 private:
  std::vector<FusedTensor> tensors_;
  TensorList list_{};
  std::int64_t part_ = 0;
  bool series_ = false;
};

/// Where the input and the output of a packed call are in its buffer. They share memory where the operation allows it
/// in place.
struct PackedSides {
  std::int64_t in_at = 0, out_at = 0, bytes = 0;
};
MEDLEY_API PackedSides packed_sides(const Call& call, std::int64_t part_bytes, int rank, int ranks);

/// Calls `copy(user, at, bytes)` for every range of the tensors' inputs, or outputs, and its place in the packed
/// buffer. By rank, then by tensor.
template <class Copy>
void each_copy(const Call& call, std::span<const FusedTensor> tensors, std::int64_t part_bytes, bool input,
               std::int64_t at, int ranks, Copy&& copy) {
  const auto element = static_cast<std::int64_t>(size_of(call.dtype));
  const int parts = (input ? many_in(call.op) : many_out(call.op)) ? ranks : 1;
  for (int r = 0; r < parts; ++r) {
    std::int64_t to = at + r * part_bytes;
    for (const FusedTensor& tensor : tensors) {
      const std::int64_t bytes = tensor.count * element;
      const auto* base = static_cast<const std::byte*>(input ? tensor.in : tensor.out);
      if (bytes > 0) copy(const_cast<std::byte*>(base + r * bytes), to, bytes);
      to += bytes;
    }
  }
}

}  // namespace medley::fuse
