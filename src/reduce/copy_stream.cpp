// A copy whose stores bypass the cache: for results larger than the cache that another rank reads.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/copy_stream.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <medley/sdk/reduce.hpp>

HWY_BEFORE_NAMESPACE();
namespace medley {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Copies `lines` cache lines to a dst aligned to a line.
void copy_lines(std::uint8_t* dst, const std::uint8_t* src, std::size_t lines) {
  const hn::ScalableTag<std::uint8_t> d;
  const std::size_t n = hn::Lanes(d);
  if (n < 16) {  // no vectors, so no streaming stores
    std::memcpy(dst, src, lines * 64);
    return;
  }
  std::size_t i = 0;
  for (; i + 4 * n <= lines * 64; i += 4 * n) {
    const auto v0 = hn::LoadU(d, src + i);
    const auto v1 = hn::LoadU(d, src + i + n);
    const auto v2 = hn::LoadU(d, src + i + 2 * n);
    const auto v3 = hn::LoadU(d, src + i + 3 * n);
    hn::Stream(v0, d, dst + i);
    hn::Stream(v1, d, dst + i + n);
    hn::Stream(v2, d, dst + i + 2 * n);
    hn::Stream(v3, d, dst + i + 3 * n);
  }
  std::memcpy(dst + i, src + i, lines * 64 - i);  // a remainder occurs only with SVE vectors of more than 64 bytes
  hwy::FlushStream();
}

}  // namespace HWY_NAMESPACE
}  // namespace medley
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace medley {

HWY_EXPORT(copy_lines);

void copy_stream(void* to, const void* from, std::size_t bytes) noexcept {
  // The bytes that copy_lines moves per iteration with the widest vectors: below it, streaming gains nothing.
  constexpr std::size_t block = 256;
  if (bytes < 2 * block) {
    if (bytes != 0) std::memcpy(to, from, bytes);
    return;
  }
  auto* dst = static_cast<std::uint8_t*>(to);
  const auto* src = static_cast<const std::uint8_t*>(from);
  const std::size_t head = -reinterpret_cast<std::uintptr_t>(dst) % 64;
  const std::size_t body = (bytes - head) / block * block;
  std::memcpy(dst, src, head);
  HWY_DYNAMIC_DISPATCH(copy_lines)(dst + head, src + head, body / 64);
  std::memcpy(dst + head + body, src + head + body, bytes - head - body);
}

}  // namespace medley
#endif
