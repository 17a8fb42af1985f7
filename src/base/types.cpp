// Names of operations, types and reductions, and their inverse.
#include <medley/types.hpp>

#include <array>
#include <string>

namespace medley {
namespace {

constexpr std::array<std::string_view, op_count> op_names = {
    "send",       "recv",        "broadcast",       "reduce",     "all_reduce", "gather",
    "all_gather", "scatter",     "reduce_scatter",  "all_to_all", "barrier",    "gatherv",
    "scatterv",   "all_gatherv", "reduce_scatterv", "all_to_allv"};
constexpr std::array<std::string_view, dtype_count> dtype_names = {"f64", "f32", "f16", "bf16", "i64",
                                                                   "i32", "i16", "i8",  "u8",   "bool"};
constexpr std::array<std::string_view, dtype_count> long_dtype_names = {
    "float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "boolean"};
constexpr std::array<std::string_view, reduce_op_count> reduce_op_names = {"sum", "avg",  "product", "min",
                                                                           "max", "band", "bor",     "bxor"};

template <typename E, std::size_t N>
std::optional<E> find(const std::array<std::string_view, N>& names, std::string_view text) {
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == text) return static_cast<E>(i);
  }
  return std::nullopt;
}

std::string without_underscores(std::string_view text) {
  std::string plain;
  for (char c : text) {
    if (c != '_' && c != '-') plain += c;
  }
  return plain;
}

}  // namespace

std::string_view name(Op op) noexcept { return op_names[static_cast<std::size_t>(op)]; }
std::string_view name(DType dtype) noexcept { return dtype_names[static_cast<std::size_t>(dtype)]; }
std::string_view name(ReduceOp op) noexcept { return reduce_op_names[static_cast<std::size_t>(op)]; }
std::string_view name(Memory memory) noexcept { return memory == Memory::host ? "host" : "cuda"; }

std::optional<Op> parse_op(std::string_view text) noexcept {
  const std::string plain = without_underscores(text);
  for (std::size_t i = 0; i < op_names.size(); ++i) {
    if (without_underscores(op_names[i]) == plain) return static_cast<Op>(i);
  }
  if (plain == "bcast") return Op::broadcast;
  return std::nullopt;
}

std::optional<DType> parse_dtype(std::string_view text) noexcept {
  if (auto found = find<DType>(dtype_names, text)) return found;
  return find<DType>(long_dtype_names, text);
}

std::optional<ReduceOp> parse_reduce_op(std::string_view text) noexcept {
  return find<ReduceOp>(reduce_op_names, text);
}

}  // namespace medley
