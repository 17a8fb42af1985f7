#include "algorithms/combiner.hpp"

#include <algorithm>
#include <cstring>

#include "reduce/half.hpp"

namespace medley::algorithms {
namespace {

constexpr std::int64_t block = 2048;  // elements converted at a time: 8 KiB of f32 stay in the L1 cache

std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

}  // namespace

Combiner::Combiner(DType dtype, ReduceOp op, int ranks)
    : dtype_(dtype),
      widens_(dtype == DType::f16 || dtype == DType::bf16),
      user_(size_of(dtype)),
      wire_(widens_ ? sizeof(float) : user_),
      of_user_(reducer(dtype, op)),
      of_wire_(widens_ ? reducer(DType::f32, op) : of_user_),
      divisor_(op == ReduceOp::avg ? ranks : 1) {}

void Combiner::load(std::byte* wire, const std::byte* user, std::int64_t count) const {
  if (count == 0 || wire == user) return;
  if (widens_) {
    widen_half(reinterpret_cast<float*>(wire), user, dtype_, size(count));
  } else {
    std::memcpy(wire, user, size(count) * user_);
  }
}

void Combiner::combine(std::byte* into, const std::byte* first, const std::byte* second, std::int64_t count) const {
  if (count == 0) return;
  const void* sources[] = {first, second};
  of_wire_(into, sources, 2, size(count), 1, false);
}

void Combiner::add(std::byte* into, const std::byte* partial, const std::byte* input, std::int64_t count) const {
  if (!widens_) return combine(into, partial, input, count);
  float wide[block];
  for (std::int64_t i = 0; i < count; i += block) {
    const std::int64_t now = std::min(block, count - i);
    widen_half(wide, input + size(i) * user_, dtype_, size(now));
    combine(into + size(i) * wire_, partial + size(i) * wire_, reinterpret_cast<const std::byte*>(wide), now);
  }
}

void Combiner::finish_with(std::byte* out, const std::byte* partial, const std::byte* input, std::int64_t count) const {
  if (count == 0) return;
  if (!widens_) {
    const void* sources[] = {partial, input};
    return of_user_(out, sources, 2, size(count), divisor_, false);
  }
  float wide[block];
  for (std::int64_t i = 0; i < count; i += block) {
    const std::int64_t now = std::min(block, count - i);
    widen_half(wide, input + size(i) * user_, dtype_, size(now));
    const void* sources[] = {partial + size(i) * wire_, wide};
    of_wire_(wide, sources, 2, size(now), divisor_, false);
    narrow_half(out + size(i) * user_, wide, dtype_, size(now));
  }
}

void Combiner::finish(std::byte* out, const std::byte* partial, std::int64_t count) const {
  if (count == 0) return;
  if (!widens_) {
    if (divisor_ == 1 && out == partial) return;
    const void* sources[] = {partial};
    return of_user_(out, sources, 1, size(count), divisor_, false);
  }
  float wide[block];
  for (std::int64_t i = 0; i < count; i += block) {
    const std::int64_t now = std::min(block, count - i);
    const void* sources[] = {partial + size(i) * wire_};
    of_wire_(wide, sources, 1, size(now), divisor_, false);
    narrow_half(out + size(i) * user_, wide, dtype_, size(now));
  }
}

void Combiner::finish_all(std::byte* out, const std::byte* const* sources, int n, std::int64_t count) const {
  if (count == 0) return;
  of_user_(out, reinterpret_cast<const void* const*>(sources), n, size(count), divisor_, false);
}

}  // namespace medley::algorithms
