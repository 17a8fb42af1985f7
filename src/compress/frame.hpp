// A part of a tensor as it travels: a header with sizes and a checksum, then its chunks. Written by the sending rank,
// checked and read by the receiving one; used by the compressed collectives and messages (algorithms/compressed*.cpp).
//
//   header   magic, version, codec, element type, number of values, bytes, checksum
//   lengths  of the chunks, 4 bytes each; the top bit marks a chunk that is stored as it is. Absent for codecs of fixed size
//   chunks   of 16,384 values each but the last
#pragma once

#include <cstddef>
#include <cstdint>
#include <medley/export.hpp>
#include <span>
#include <vector>

#include "compress/codec.hpp"

namespace medley::compress {

inline constexpr std::size_t frame_header_bytes = 40;

/// Writes the header of a frame whose other bytes are in place.
void seal_frame(const Codec& codec, DType dtype, std::int64_t count, std::span<std::byte> frame);

/// The most bytes of a frame, and their exact number for codecs of fixed size.
MEDLEY_API std::size_t most_frame_bytes(const Codec& codec, DType dtype, std::int64_t count);

inline std::int64_t chunks_of(std::int64_t count) {
  return (count + std::int64_t{chunk_values} - 1) / std::int64_t{chunk_values};
}

/// The values of one chunk in the codec's work type.
struct WorkChunk {
  alignas(64) std::byte bytes[chunk_values * 8];
  float* f32() { return reinterpret_cast<float*>(bytes); }
};

class MEDLEY_API FrameWriter {
 public:
  /// `out` holds most_frame_bytes().
  FrameWriter(const Codec& codec, DType dtype, std::int64_t count, std::byte* out);
  /// The next chunk, of elements in the tensor's type. With a residual (error feedback): the values plus the residual
  /// are encoded, and the residual becomes what was lost. Lossless codecs leave it alone.
  void add(const void* elements, float* residual = nullptr);
  /// The same from values in the codec's work type, which are a reduction's result.
  void add_result(const void* work, float* residual = nullptr);
  bool complete() const { return written_ == count_; }
  /// Writes the header once all chunks are added; returns the frame's bytes.
  std::size_t finish();

 private:
  std::size_t next_count() const;
  void encode(const void* work, bool result, float* residual);
  const Codec& codec_;
  DType dtype_;
  std::int64_t count_, written_ = 0;
  std::byte* out_;
  std::byte* lengths_;
  std::byte* at_;
};

class MEDLEY_API FrameReader {
 public:
  /// Checks the header, the lengths and the checksum. Throws Error(mismatch) where the frame is of another codec, type
  /// or count than this rank expects, and Corrupt where it is damaged.
  FrameReader(const Codec& codec, DType dtype, std::int64_t count, std::span<const std::byte> frame);
  std::int64_t chunks() const { return chunks_of(count_); }
  std::int64_t count() const { return count_; }
  const std::byte* frame() const { return frame_.data(); }
  /// Values of chunk number `index`.
  std::size_t count_of(std::int64_t index) const;
  /// Decodes a chunk to the codec's work type, or to the tensor's type.
  void read_work(std::int64_t index, void* work) const;
  void read(std::int64_t index, void* elements) const;

 private:
  const Codec& codec_;
  DType dtype_;
  std::int64_t count_;
  std::span<const std::byte> frame_;
  std::vector<std::size_t> ends_;  ///< of the chunks in the frame; empty for codecs of fixed size
  std::vector<bool> stored_;       ///< chunks that are stored as they are
};

/// The number of values according to its header, for a receive buffer that may be larger. Throws Corrupt.
std::int64_t frame_values(std::span<const std::byte> header);

/// The bytes of a frame according to its header, where the first `frame_header_bytes` of it are there. Throws Corrupt
/// where that is more than such a frame can have.
MEDLEY_API std::size_t frame_bytes(const Codec& codec, DType dtype, std::int64_t count,
                                   std::span<const std::byte> header);

}  // namespace medley::compress
