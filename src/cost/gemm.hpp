// One matrix product as cuBLAS sees it, and its memory layout. The shape module's advisor lists these; the
// GPU model times them; `medley shape bench` measures them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace medley::cost {

/// Which operands are transposed, in cuBLAS's column-major words: C(m×n) = op(A)(m×k) · op(B)(k×n).
///
/// | layout | A is stored   | B is stored   | C           | PyTorch Linear Y = X·Wᵀ, X (tokens×in), W
/// (out×in) |
/// |--------|---------------|---------------|-------------|-----------------------------------------------------|
/// | TN     | k contiguous  | k contiguous  | m contiguous | forward: m = out, n = tokens, k = in | | NN | m
/// contiguous  | k contiguous  | m contiguous | dgrad:   m = in,  n = tokens, k = out              | | NT | m
/// contiguous  | n contiguous  | m contiguous | wgrad:   m = in,  n = out,    k = tokens           |
///
/// A row-major product is the same product with A and B, and m and n, exchanged.
enum class GemmLayout : std::uint8_t { TN, NN, NT };

/// The operands' type. C is bf16 for bf16 and fp8, fp16 for fp16; sums are kept in fp32.
enum class GemmType : std::uint8_t { bf16, fp16, fp8 };

std::string_view name(GemmLayout layout) noexcept;
std::string_view name(GemmType type) noexcept;
/// Inverse of name(), in either case; throws medley::Error (invalid) that names the value and the choices.
GemmLayout parse_gemm_layout(std::string_view text);
GemmType parse_gemm_type(std::string_view text);

struct Gemm {
  std::string name = {};  ///< what the product is for, such as "qkv forward"; never affects a time
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t batch = 1;  ///< independent products in one strided-batched call
  GemmLayout layout = GemmLayout::TN;
  GemmType type = GemmType::bf16;

  double flops() const noexcept { return 2.0 * double(m) * double(n) * double(k) * double(batch); }
  /// Each operand moved once, in bytes.
  double bytes() const noexcept;
  int element_bytes() const noexcept { return type == GemmType::fp8 ? 1 : 2; }
  /// The largest power of two, at most 64, that divides the contiguous extent of A, of B, of C (elements).
  struct Alignment {
    int a, b, c;
    int least() const noexcept { return a < b ? (a < c ? a : c) : (b < c ? b : c); }
  };
  Alignment alignment() const noexcept;
};

/// Rejects zero, negative and overflowing sizes with the rule, as medley::Error (invalid).
void check(const Gemm& gemm);

/// The three products of a PyTorch Linear (tokens×in → tokens×out) with the mapping of the table above.
Gemm linear_forward(std::string name, std::int64_t tokens, std::int64_t in, std::int64_t out);
Gemm linear_dgrad(std::string name, std::int64_t tokens, std::int64_t in, std::int64_t out);
Gemm linear_wgrad(std::string name, std::int64_t tokens, std::int64_t in, std::int64_t out);

}  // namespace medley::cost
