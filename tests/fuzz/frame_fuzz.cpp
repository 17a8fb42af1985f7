// Fuzzes what reads compressed data: whatever the bytes are, a frame decodes or is refused, and nothing outside of it
// is touched. The first bytes choose the codec, the element type, the number of values and what is fuzzed: the codec's
// own decoder, a frame, or a frame whose header and checksum are right, so that the fuzzer gets past them. What a codec
// encodes it must also decode.
#include <cstring>
#include <medley/error.hpp>
#include <vector>

#include "compress/checksum.hpp"
#include "compress/frame.hpp"

namespace {

using namespace medley;
using namespace medley::compress;

constexpr const char* names[] = {"bf16", "fp8_e4m3",   "fp8_e5m2",           "int8",      "int4", "lz4",
                                 "zstd", "zfp_rate:8", "zfp_accuracy:0.001", "top_k:0.01"};
constexpr DType types[] = {DType::f32, DType::f16, DType::bf16, DType::f64, DType::u8};

/// Lets the frame's own checks pass, but for its chunks.
void repair(std::vector<std::byte>& frame, const Codec& codec, DType dtype, std::uint64_t count) {
  if (frame.size() < frame_header_bytes) return;
  // A right header of an empty frame; then count, bytes and checksum
  FrameWriter(codec, dtype, 0, frame.data()).finish();
  const std::uint64_t bytes = frame.size();
  std::memcpy(frame.data() + 16, &count, sizeof count);
  std::memcpy(frame.data() + 24, &bytes, sizeof bytes);
  const std::uint64_t sum =
      checksum(std::span(frame).subspan(frame_header_bytes), checksum(std::span(frame).first(32), 0));
  std::memcpy(frame.data() + 32, &sum, sizeof sum);
}

void read_frame(const Codec& codec, DType dtype, std::int64_t count, const std::vector<std::byte>& frame) {
  const FrameReader reader(codec, dtype, count, frame);
  for (std::int64_t i = 0; i < reader.chunks(); ++i) {
    std::vector<std::byte> elements(reader.count_of(i) * size_of(dtype));  // as long as the chunk, for ASan
    reader.read(i, elements.data());
  }
}

void round_trip(const Codec& codec, DType dtype, const std::vector<std::byte>& data) {
  const auto count = static_cast<std::int64_t>(data.size() / size_of(dtype));
  std::vector<std::byte> frame(most_frame_bytes(codec, dtype, count));
  FrameWriter writer(codec, dtype, count, frame.data());
  for (std::size_t at = 0; !writer.complete(); at += chunk_values) writer.add(data.data() + at * size_of(dtype));
  frame.resize(writer.finish());
  read_frame(codec, dtype, count, frame);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 5) return 0;
  const Codec& codec = compress::codec(parse_spec(names[data[0] % std::size(names)]));
  const DType dtype = types[data[1] % std::size(types)];
  if (!codec.takes(dtype)) return 0;
  const std::int64_t count = data[2] | data[3] << 8;  // up to four chunks
  std::vector<std::byte> rest(size - 5);
  if (size > 5) std::memcpy(rest.data(), data + 5, size - 5);
  if (data[4] % 4 == 3) {
    round_trip(codec, dtype, rest);
    return 0;
  }
  try {
    if (data[4] % 4 == 0) {
      const std::size_t chunk = static_cast<std::size_t>(count) % chunk_values + 1,
                        element = size_of(codec.work_type(dtype));
      std::vector<std::byte> values(chunk * element);
      codec.decode(rest, values.data(), chunk, element);
    } else {
      if (data[4] % 4 == 2) repair(rest, codec, dtype, static_cast<std::uint64_t>(count));
      read_frame(codec, dtype, count, rest);
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::system && error.kind() != ErrorKind::mismatch) __builtin_trap();
  }
  return 0;
}
