#include "cost/gemm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <medley/error.hpp>

namespace medley::cost {
namespace {

bool same(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) { return std::toupper(x) == std::toupper(y); });
}

/// The largest power of two that divides `extent`, at most 64: alignment beyond 128 bytes gains nothing.
int power_of_two_in(std::int64_t extent) { return int(std::min<std::int64_t>(extent & -extent, 64)); }

}  // namespace

std::string_view name(GemmLayout layout) noexcept {
  constexpr std::array<std::string_view, 3> names{"TN", "NN", "NT"};
  return names[std::size_t(layout)];
}

std::string_view name(GemmType type) noexcept {
  constexpr std::array<std::string_view, 3> names{"bf16", "fp16", "fp8"};
  return names[std::size_t(type)];
}

GemmLayout parse_gemm_layout(std::string_view text) {
  for (auto layout : {GemmLayout::TN, GemmLayout::NN, GemmLayout::NT})
    if (same(text, name(layout))) return layout;
  throw Error(ErrorKind::invalid, fmt::format("unknown GEMM layout '{}': it is TN, NN or NT", text));
}

GemmType parse_gemm_type(std::string_view text) {
  for (auto type : {GemmType::bf16, GemmType::fp16, GemmType::fp8})
    if (same(text, name(type))) return type;
  if (same(text, "f16") || same(text, "float16") || same(text, "half")) return GemmType::fp16;
  if (same(text, "bfloat16")) return GemmType::bf16;
  if (same(text, "f8") || same(text, "e4m3")) return GemmType::fp8;
  throw Error(ErrorKind::invalid, fmt::format("unknown GEMM type '{}': it is bf16, fp16 or fp8", text));
}

double Gemm::bytes() const noexcept {
  const double operands = double(m) * double(k) + double(k) * double(n);
  return double(batch) * (operands * element_bytes() + 2.0 * double(m) * double(n));
}

Gemm::Alignment Gemm::alignment() const noexcept {
  const bool a_by_k = layout == GemmLayout::TN, b_by_k = layout != GemmLayout::NT;
  return {power_of_two_in(a_by_k ? k : m), power_of_two_in(b_by_k ? k : n), power_of_two_in(m)};
}

void check(const Gemm& gemm) {
  constexpr std::int64_t limit = std::int64_t{1} << 31;  // cuBLAS's own limit: extents are 32-bit in its kernels
  const auto refuse = [&](std::string_view what, std::int64_t value) {
    throw Error(ErrorKind::invalid, fmt::format("GEMM{}{} has {} = {}: m, n, k and batch must lie between 1 and {}",
                                                gemm.name.empty() ? "" : " ", gemm.name, what, value, limit - 1));
  };
  const std::array<std::pair<std::string_view, std::int64_t>, 4> extents{
      {{"m", gemm.m}, {"n", gemm.n}, {"k", gemm.k}, {"batch", gemm.batch}}};
  for (const auto& [what, value] : extents)
    if (value < 1 || value >= limit) refuse(what, value);
}

Gemm linear_forward(std::string name, std::int64_t tokens, std::int64_t in, std::int64_t out) {
  return {.name = std::move(name), .m = out, .n = tokens, .k = in, .layout = GemmLayout::TN};
}
Gemm linear_dgrad(std::string name, std::int64_t tokens, std::int64_t in, std::int64_t out) {
  return {.name = std::move(name), .m = in, .n = tokens, .k = out, .layout = GemmLayout::NN};
}
Gemm linear_wgrad(std::string name, std::int64_t tokens, std::int64_t in, std::int64_t out) {
  return {.name = std::move(name), .m = in, .n = out, .k = tokens, .layout = GemmLayout::NT};
}

}  // namespace medley::cost
