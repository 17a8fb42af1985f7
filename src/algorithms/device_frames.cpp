#include "algorithms/device_frames.hpp"

#include <algorithm>
#include <bit>

#include "compress/frame.hpp"

namespace medley::algorithms {
namespace {

// A warp stores 128 bytes at once: chunks that begin at such a boundary cross the bus in whole lines.
constexpr std::size_t line = 128;
constexpr std::size_t frame_begin = line - compress::frame_header_bytes;
constexpr std::size_t least_block = 4096;

DeviceFrame device_frame(const compress::Codec& codec, DType dtype, std::int64_t count, const std::byte* frame) {
  return {.codec = *block_codec(codec.spec().kind),
          .dtype = dtype,
          .count = count,
          .chunks = const_cast<std::byte*>(frame) + compress::frame_header_bytes};
}

}  // namespace

std::optional<BlockCodec> block_codec(compress::Kind kind) {
  switch (kind) {
    case compress::Kind::bf16: return BlockCodec::bf16;
    case compress::Kind::fp8_e4m3: return BlockCodec::fp8_e4m3;
    case compress::Kind::fp8_e5m2: return BlockCodec::fp8_e5m2;
    case compress::Kind::int8: return BlockCodec::int8;
    case compress::Kind::int4: return BlockCodec::int4;
    default: return std::nullopt;
  }
}

bool DeviceFrames::has_kernels(const Device& device, const Call& call) {
  return device.has_codecs() && compress::is_compressed(call.algorithm) &&
         block_codec(compress::codec_of(call.algorithm).spec().kind);
}

void DeviceFrames::encode(const compress::Codec& codec, DType dtype, std::int64_t count, std::byte* frame,
                          const void* elements, float* residual) {
  ++launches_;
  device_->encode(device_frame(codec, dtype, count, frame), elements, residual, stream_);
}

void DeviceFrames::decode(const compress::Codec& codec, DType dtype, std::int64_t count, const std::byte* frame,
                          void* elements) {
  ++launches_;
  device_->decode(device_frame(codec, dtype, count, frame), elements, stream_);
}

void DeviceFrames::combine(const compress::Codec& codec, DeviceReduction reduction, const std::byte* first_frame,
                           std::byte* result_frame) {
  ++launches_;
  reduction.first = device_frame(codec, reduction.first.dtype, reduction.first.count, first_frame);
  if (result_frame) reduction.chunks = result_frame + compress::frame_header_bytes;
  device_->combine(reduction, stream_);
}

void DeviceFrames::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0 || to == from) return;
  ++launches_;
  device_->copy(to, from, bytes, stream_);
}

PinnedBlock DeviceFrames::take(std::size_t bytes) {
  std::erase_if(retired_, [this](const Retired& block) { return reclaim(block); });
  // Few sizes, so that the pool can reuse them
  const std::size_t whole = std::bit_ceil(std::max(frame_begin + bytes, least_block));
  return {shared_from_this(), static_cast<std::byte*>(device_->pinned(whole)), whole};
}

std::shared_ptr<float> DeviceFrames::zeros(std::int64_t count) {
  const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(count, 1)) * sizeof(float);
  ++launches_;
  auto* const memory = static_cast<float*>(device_->allocate_zeros(bytes, stream_));
  return {memory, [device = device_, stream = stream_](float* gone) { device->free_in(gone, stream); }};
}

void DeviceFrames::give_back(std::byte* memory, std::size_t bytes) noexcept {
  if (launches_ == done_) return device_->release_pinned(memory, bytes);
  try {
    retired_.reserve(retired_.size() + 1);
    retired_.push_back({device_->record(stream_), memory, bytes});
  } catch (const std::exception&) {
    // The device is broken: the block is lost, since a kernel may still use it.
  }
}

bool DeviceFrames::reclaim(const Retired& block) noexcept {
  try {
    if (!device_->completed(block.event)) return false;
    device_->release_pinned(block.memory, block.bytes);
    device_->release_event(block.event);
  } catch (const Error&) {
    // lost, as above
  }
  return true;
}

bool DeviceFrames::idle() noexcept {
  if (launches_ == done_) return true;
  try {
    return Mark(*this).reached();
  } catch (const std::exception&) {
    return true;
  }
}

DeviceFrames::~DeviceFrames() {
  for (const Retired& block : retired_) reclaim(block);
}

std::byte* PinnedBlock::frame() const { return memory_ ? memory_ + frame_begin : nullptr; }

std::size_t frame_stride(std::size_t bytes) { return (bytes + line - 1) / line * line; }

}  // namespace medley::algorithms
