#include "compress/frame.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "compress/checksum.hpp"
#include "reduce/half.hpp"

namespace medley::compress {
namespace {

constexpr std::uint32_t frame_magic = 0x5a4c444d;  // "MDLZ"
constexpr std::uint8_t frame_version = 1;
constexpr std::uint32_t stored_bit = 0x80000000u;

struct Header {
  std::uint32_t magic;
  std::uint8_t version, kind, dtype, unused;
  double parameter;
  std::uint64_t count, bytes, checksum;
};
static_assert(sizeof(Header) == frame_header_bytes);

std::uint64_t checksum_of(const Header& header, std::span<const std::byte> rest) {
  std::byte fields[sizeof header - sizeof header.checksum];
  std::memcpy(fields, &header, sizeof fields);
  return checksum(rest, checksum(fields, 0));
}

/// Elements to f32.
void widen(float* to, const void* from, DType dtype, std::size_t count) {
  if (dtype == DType::f32) {
    std::memcpy(to, from, count * sizeof(float));
  } else {
    widen_half(to, from, dtype, count);
  }
}

/// f32 to elements. NaN becomes the one that narrow_half() needs. What decodes to a little more than the largest f16
/// was at most that.
void narrow(void* to, float* from, DType dtype, std::size_t count, bool saturate) {
  if (dtype == DType::f32) {
    std::memcpy(to, from, count * sizeof(float));
    return;
  }
  const float most = dtype == DType::f16 ? 65504.0f : std::numeric_limits<float>::max();
  for (std::size_t i = 0; i < count; ++i) {
    const float value = from[i];
    const float clamped =
        saturate && std::abs(value) <= std::numeric_limits<float>::max() ? std::clamp(value, -most, most) : value;
    from[i] = value == value ? clamped : std::numeric_limits<float>::quiet_NaN();
  }
  narrow_half(to, from, dtype, count);
}

std::size_t lengths_bytes(const Codec& codec, std::int64_t count) {
  return codec.fixed_size() ? 0 : 4 * static_cast<std::size_t>(chunks_of(count));
}

std::size_t chunk_count(std::int64_t whole, std::int64_t index) {
  return static_cast<std::size_t>(std::min<std::int64_t>(chunk_values, whole - index * std::int64_t{chunk_values}));
}

Header header_of(std::span<const std::byte> frame) {
  Header header{};
  if (frame.size() < sizeof header) throw Corrupt("a frame is shorter than its header");
  std::memcpy(&header, frame.data(), sizeof header);
  if (header.magic != frame_magic)
    throw Corrupt("a frame does not begin as one; did the other rank send it without compression?");
  return header;
}

}  // namespace

std::size_t most_frame_bytes(const Codec& codec, DType dtype, std::int64_t count) {
  const std::size_t element = size_of(codec.work_type(dtype));
  const auto all = static_cast<std::size_t>(count);
  std::size_t bytes = all / chunk_values * codec.most_bytes(chunk_values, element);
  if (all % chunk_values > 0) bytes += codec.most_bytes(all % chunk_values, element);
  return frame_header_bytes + lengths_bytes(codec, count) + bytes;
}

FrameWriter::FrameWriter(const Codec& codec, DType dtype, std::int64_t count, std::byte* out)
    : codec_(codec),
      dtype_(dtype),
      count_(count),
      out_(out),
      lengths_(out + frame_header_bytes),
      at_(lengths_ + lengths_bytes(codec, count)) {}

std::size_t FrameWriter::next_count() const { return chunk_count(count_, written_ / std::int64_t{chunk_values}); }

void FrameWriter::add(const void* elements, float* residual) {
  if (codec_.work_type(dtype_) == dtype_ && !residual) return encode(elements, false, nullptr);
  if (!codec_.lossy()) return encode(elements, false, nullptr);
  WorkChunk work;
  widen(work.f32(), elements, dtype_, next_count());
  encode(work.bytes, false, residual);
}

void FrameWriter::add_result(const void* values, float* residual) {
  if (!codec_.lossy() || (dtype_ == DType::f32 && !residual)) return encode(values, true, nullptr);
  WorkChunk work;
  std::memcpy(work.bytes, values, next_count() * sizeof(float));
  if (dtype_ != DType::f32) {  // what overflows the type is infinite, as without compression
    std::uint16_t rounded[chunk_values];
    narrow(rounded, work.f32(), dtype_, next_count(), false);
    widen_half(work.f32(), rounded, dtype_, next_count());
  }
  encode(work.bytes, true, residual);
}

void FrameWriter::encode(const void* work, bool result, float* residual) {
  const std::size_t count = next_count(), element = size_of(codec_.work_type(dtype_));
  if (residual) {  // `work` is our own copy
    auto* values = static_cast<float*>(const_cast<void*>(work));
    for (std::size_t i = 0; i < count; ++i) values[i] += residual[i];
  }
  std::size_t bytes =
      result ? codec_.encode_result(work, count, element, at_) : codec_.encode(work, count, element, at_);
  const bool stored = bytes == 0;
  if (stored) std::memcpy(at_, work, bytes = count * element);
  if (residual) {
    WorkChunk decoded;
    if (!stored) codec_.decode({at_, bytes}, decoded.bytes, count, element);
    const auto* values = static_cast<const float*>(work);
    for (std::size_t i = 0; i < count; ++i) {
      const float lost = stored ? 0 : values[i] - decoded.f32()[i];
      residual[i] = std::isfinite(lost) ? lost : 0;  // a NaN must not stay for ever
    }
  }
  if (!codec_.fixed_size()) {
    const std::uint32_t length = static_cast<std::uint32_t>(bytes) | (stored ? stored_bit : 0);
    std::memcpy(lengths_ + 4 * (written_ / std::int64_t{chunk_values}), &length, sizeof length);
  }
  at_ += bytes;
  written_ += static_cast<std::int64_t>(count);
}

std::size_t FrameWriter::finish() {
  const auto bytes = static_cast<std::size_t>(at_ - out_);
  seal_frame(codec_, dtype_, count_, {out_, bytes});
  return bytes;
}

void seal_frame(const Codec& codec, DType dtype, std::int64_t count, std::span<std::byte> frame) {
  Header header{frame_magic,
                frame_version,
                static_cast<std::uint8_t>(codec.spec().kind),
                static_cast<std::uint8_t>(dtype),
                0,
                codec.spec().parameter,
                static_cast<std::uint64_t>(count),
                frame.size(),
                0};
  header.checksum = checksum_of(header, frame.subspan(sizeof header));
  std::memcpy(frame.data(), &header, sizeof header);
}

std::int64_t frame_values(std::span<const std::byte> start) {
  const Header header = header_of(start);
  if (header.count > static_cast<std::uint64_t>(INT64_MAX) / 16)
    throw Corrupt("a frame has an impossible number of values");
  return static_cast<std::int64_t>(header.count);
}

std::size_t frame_bytes(const Codec& codec, DType dtype, std::int64_t count, std::span<const std::byte> start) {
  const Header header = header_of(start);
  if (header.version != frame_version) {
    throw Error(ErrorKind::mismatch,
                fmt::format("a frame has version {}, this rank reads {}", header.version, frame_version));
  }
  if (header.bytes > most_frame_bytes(codec, dtype, count) || header.bytes < sizeof header) {
    throw Corrupt(fmt::format("a frame of {} values says that it has {} bytes", count, header.bytes));
  }
  return header.bytes;
}

FrameReader::FrameReader(const Codec& codec, DType dtype, std::int64_t count, std::span<const std::byte> frame)
    : codec_(codec), dtype_(dtype), count_(count) {
  const std::size_t bytes = frame_bytes(codec, dtype, count, frame);
  if (frame.size() < bytes)
    throw Corrupt(fmt::format("{} of {} bytes of a frame are missing", bytes - frame.size(), bytes));
  frame_ = frame.first(bytes);
  const Header header = header_of(frame_);
  if (header.checksum != checksum_of(header, frame_.subspan(sizeof header)))
    throw Corrupt("the checksum of a frame differs");
  const Spec& spec = codec.spec();
  if (header.kind != static_cast<std::uint8_t>(spec.kind) || header.parameter != spec.parameter ||
      header.dtype != static_cast<std::uint8_t>(dtype) || header.count != static_cast<std::uint64_t>(count)) {
    throw Error(
        ErrorKind::mismatch,
        fmt::format(
            "the other rank compressed {} values of type number {} with codec number {}, this rank expects {} values of {} with {}",
            header.count, header.dtype, header.kind, count, name(dtype), spec.text()));
  }
  if (codec.fixed_size()) {
    if (bytes != most_frame_bytes(codec, dtype, count)) throw Corrupt("a frame has the wrong length");
    return;
  }
  std::size_t end = sizeof header + lengths_bytes(codec, count);
  if (end > bytes) throw Corrupt("a frame is shorter than its list of lengths");
  const std::size_t element = size_of(codec.work_type(dtype));
  for (std::int64_t i = 0; i < chunks(); ++i) {
    std::uint32_t length = 0;
    std::memcpy(&length, frame_.data() + sizeof header + 4 * i, sizeof length);
    const bool stored = (length & stored_bit) != 0;
    end += length & ~stored_bit;
    if (end > bytes || (stored && (length & ~stored_bit) != count_of(i) * element))
      throw Corrupt("a chunk has the wrong length");
    ends_.push_back(end);
    stored_.push_back(stored);
  }
  if (end != bytes) throw Corrupt("a frame has bytes that belong to no chunk");
}

std::size_t FrameReader::count_of(std::int64_t index) const { return chunk_count(count_, index); }

void FrameReader::read_work(std::int64_t index, void* work) const {
  const std::size_t element = size_of(codec_.work_type(dtype_)), count = count_of(index);
  const auto i = static_cast<std::size_t>(index);
  if (codec_.fixed_size()) {
    const std::size_t begin = frame_header_bytes + i * codec_.most_bytes(chunk_values, element);
    return codec_.decode(frame_.subspan(begin, codec_.most_bytes(count, element)), work, count, element);
  }
  const std::size_t begin = index == 0 ? frame_header_bytes + lengths_bytes(codec_, count_) : ends_[i - 1];
  const std::span<const std::byte> chunk = frame_.subspan(begin, ends_[i] - begin);
  if (stored_[i]) {
    std::memcpy(work, chunk.data(), chunk.size());
  } else {
    codec_.decode(chunk, work, count, element);
  }
}

void FrameReader::read(std::int64_t index, void* elements) const {
  if (codec_.work_type(dtype_) == dtype_) return read_work(index, elements);
  WorkChunk work;
  read_work(index, work.bytes);
  narrow(elements, work.f32(), dtype_, count_of(index), true);
}

}  // namespace medley::compress
