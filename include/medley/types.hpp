// The basic types of Medley: operations, element types, reductions, kinds of memory.
// Included by the public API, by backends and by the planning tools.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <medley/export.hpp>

namespace medley {

/// A kind of operation.
enum class Op : std::uint8_t {
  send,
  recv,
  broadcast,
  reduce,
  all_reduce,
  gather,
  all_gather,
  scatter,
  reduce_scatter,
  all_to_all,
  barrier,
  gatherv,
  scatterv,
  all_gatherv,
  reduce_scatterv,
  all_to_allv,
};
inline constexpr int op_count = 16;

constexpr bool is_collective(Op op) noexcept { return op != Op::send && op != Op::recv; }
constexpr bool reduces(Op op) noexcept {
  return op == Op::reduce || op == Op::all_reduce || op == Op::reduce_scatter || op == Op::reduce_scatterv;
}
constexpr bool rooted(Op op) noexcept {
  return op == Op::broadcast || op == Op::reduce || op == Op::gather || op == Op::scatter || op == Op::gatherv ||
         op == Op::scatterv;
}
/// Whether it is a v-collective, whose parts differ in size: gatherv and the like.
constexpr bool is_v_collective(Op op) noexcept { return op >= Op::gatherv; }

/// The type of one element.
enum class DType : std::uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean };
inline constexpr int dtype_count = 10;

/// How the elements of several ranks are combined into one.
enum class ReduceOp : std::uint8_t { sum, avg, product, min, max, band, bor, bxor };
inline constexpr int reduce_op_count = 8;

/// Where a buffer is.
enum class Memory : std::uint8_t { host, cuda };

inline constexpr ReduceOp sum = ReduceOp::sum, avg = ReduceOp::avg, product = ReduceOp::product, min = ReduceOp::min,
                          max = ReduceOp::max, band = ReduceOp::band, bor = ReduceOp::bor, bxor = ReduceOp::bxor;

/// The spelling used on the command line, in tables and in messages, such as "all_reduce" or "bf16".
MEDLEY_API std::string_view name(Op op) noexcept;
MEDLEY_API std::string_view name(DType dtype) noexcept;
MEDLEY_API std::string_view name(ReduceOp op) noexcept;
MEDLEY_API std::string_view name(Memory memory) noexcept;

/// The inverse of name(). Also accepts `allreduce`, `alltoall` and the like, and `float32` or `bool`.
MEDLEY_API std::optional<Op> parse_op(std::string_view text) noexcept;
MEDLEY_API std::optional<DType> parse_dtype(std::string_view text) noexcept;
MEDLEY_API std::optional<ReduceOp> parse_reduce_op(std::string_view text) noexcept;

/// Bytes of one element.
constexpr std::size_t size_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::f64:
    case DType::i64: return 8;
    case DType::f32:
    case DType::i32: return 4;
    case DType::f16:
    case DType::bf16:
    case DType::i16: return 2;
    case DType::i8:
    case DType::u8:
    case DType::boolean: return 1;
  }
  return 0;
}

/// Whether `op` can combine elements of `dtype`: bitwise reductions need integers or bool, avg needs a float.
constexpr bool reducible(DType dtype, ReduceOp op) noexcept {
  const bool floating = dtype == DType::f64 || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
  switch (op) {
    case ReduceOp::band:
    case ReduceOp::bor:
    case ReduceOp::bxor: return !floating;
    case ReduceOp::avg: return floating;
    default: return true;
  }
}

}  // namespace medley
