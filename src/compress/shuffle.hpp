// Byte shuffling: the first bytes of all elements, then the second bytes, and so on. Exponents of neighbouring floats
// are alike, so a general compressor finds runs in them. Used by the lossless codecs.
#pragma once

#include <cstddef>

namespace medley::compress {

inline void shuffle(std::byte* to, const std::byte* from, std::size_t count, std::size_t element) {
  for (std::size_t b = 0; b < element; ++b) {
    for (std::size_t i = 0; i < count; ++i) to[b * count + i] = from[i * element + b];
  }
}

inline void unshuffle(std::byte* to, const std::byte* from, std::size_t count, std::size_t element) {
  for (std::size_t b = 0; b < element; ++b) {
    for (std::size_t i = 0; i < count; ++i) to[i * element + b] = from[b * count + i];
  }
}

/// A chunk's bytes, shuffled; the largest element has eight.
struct ShuffledChunk {
  std::byte bytes[16384 * 8];
};

}  // namespace medley::compress
