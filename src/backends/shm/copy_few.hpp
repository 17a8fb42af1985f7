// Copies what fits into a cell of a pipe. A call of memcpy() takes as long as the rest of a small message's way through
// the pipe.
#pragma once

#include <cstddef>
#include <cstring>

namespace medley::shm {

/// Two pieces of a known size, which overlap where the length is between.
template <std::size_t piece>
[[gnu::always_inline]] inline void copy_both_ends(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::byte first[piece], last[piece];
  std::memcpy(first, from, piece);
  std::memcpy(last, from + bytes - piece, piece);
  std::memcpy(to, first, piece);
  std::memcpy(to + bytes - piece, last, piece);
}

/// Up to 64 bytes, also none; the two must not overlap.
[[gnu::always_inline]] inline void copy_few(void* destination, const void* source, std::size_t bytes) {
  auto* const to = static_cast<std::byte*>(destination);
  const auto* const from = static_cast<const std::byte*>(source);
  if (bytes >= 32) return copy_both_ends<32>(to, from, bytes);
  if (bytes >= 16) return copy_both_ends<16>(to, from, bytes);
  if (bytes >= 8) return copy_both_ends<8>(to, from, bytes);
  if (bytes >= 4) return copy_both_ends<4>(to, from, bytes);
  for (std::size_t i = 0; i < bytes; ++i) to[i] = from[i];
}

}  // namespace medley::shm
