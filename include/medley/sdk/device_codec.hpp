// Compression on a device: what the core asks of the device plugin's kernels. The chunks of a frame have the same bits
// as those that the host's codecs write (src/compress), so ranks that compress on the device and ranks that do it on
// the host understand each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <medley/types.hpp>

namespace medley {

/// The codecs that devices have: those of fixed size.
enum class BlockCodec : std::uint8_t { bf16, fp8_e4m3, fp8_e5m2, int8, int4 };

/// The chunks of one frame, without its header.
struct DeviceFrame {
  BlockCodec codec{};
  DType dtype{};                ///< of the elements: f32, f16 or bf16
  std::int64_t count = 0;       ///< values
  std::byte* chunks = nullptr;  ///< in memory that the device can reach, such as pinned memory; 8-byte aligned
};

/// One rank's part of a reduction: its own elements and the frames of all other ranks.
struct DeviceReduction {
  DeviceFrame first{};      ///< the frame of the lowest other rank
  std::int64_t stride = 0;  ///< bytes from the chunks of one frame to those of the next
  const void* own = nullptr;
  int rank = 0, ranks = 0;
  ReduceOp op{};
  void* elements = nullptr;     ///< the result goes there, rounded to the element type,
  std::byte* chunks = nullptr;  ///< or is encoded there, where `elements` is null
  float* residual = nullptr;    ///< of the encoded result; may be null
};

}  // namespace medley
