// Kernels of the codecs with fixed sizes, vectorised for this CPU. The same bits on every CPU.
#pragma once

#include <cstddef>
#include <cstdint>

namespace medley::compress {

inline constexpr int byte_block = 256;   ///< values that share a scale: a scale of 4 bytes adds 1.6 % to one byte each
inline constexpr int nibble_block = 64;  ///< 12.5 % to half a byte each; four bits need the finer scale

/// Encodes one whole block and returns its scale. A block with a non-finite value gets the scale NaN; one of tiny
/// values 0.
using EncodeBlock = float (*)(const float* values, std::uint8_t* out);
/// Decodes one whole block; every value is NaN if the scale is not finite.
using DecodeBlock = void (*)(const std::uint8_t* in, float scale, float* values);

struct BlockKernels {
  EncodeBlock encode;
  DecodeBlock decode;
};
enum class BlockFormat : std::uint8_t { int8, int4, e4m3, e5m2 };
BlockKernels block_kernels(BlockFormat format);

/// f32 to bf16, to nearest even; finite values stay finite, and NaN becomes the canonical one.
void narrow_bf16(std::uint16_t* to, const float* from, std::size_t count);

}  // namespace medley::compress
