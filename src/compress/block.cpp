// fp8, int8 and int4 in blocks: the scales of a chunk's blocks, then their codes. The last block may be shorter.
#include <algorithm>
#include <cstring>

#include "compress/blocks.hpp"
#include "compress/codec.hpp"

namespace medley::compress {
namespace {

class Block final : public Codec {
 public:
  Block(const Spec& spec, BlockFormat format, int block, int codes_per_byte)
      : Codec(spec),
        kernels_(block_kernels(format)),
        block_(static_cast<std::size_t>(block)),
        bytes_(static_cast<std::size_t>(block / codes_per_byte)),
        nibbles_(codes_per_byte == 2) {}
  bool fixed_size() const override { return true; }
  std::size_t most_bytes(std::size_t count, std::size_t) const override {
    return 4 * blocks(count) + code_bytes(count);
  }
  std::size_t encode(const void* values, std::size_t count, std::size_t, std::byte* out) const override;
  void decode(std::span<const std::byte> in, void* values, std::size_t count, std::size_t) const override;

 private:
  std::size_t blocks(std::size_t count) const { return (count + block_ - 1) / block_; }
  /// A short last block takes one byte per code; of int4 it takes a whole block, since its bytes hold distant values.
  std::size_t code_bytes(std::size_t count) const {
    const std::size_t left = count % block_;
    return count / block_ * bytes_ + (nibbles_ && left > 0 ? bytes_ : left);
  }

  BlockKernels kernels_;
  std::size_t block_, bytes_;  ///< values and bytes of a whole block
  bool nibbles_;
};

std::size_t Block::encode(const void* values, std::size_t count, std::size_t, std::byte* out) const {
  const auto* from = static_cast<const float*>(values);
  std::byte* scales = out;
  auto* codes = reinterpret_cast<std::uint8_t*>(out + 4 * blocks(count));
  const auto add_scale = [&scales](float scale) {
    std::memcpy(scales, &scale, sizeof scale);
    scales += sizeof scale;
  };
  std::size_t at = 0;
  for (; at + block_ <= count; at += block_, codes += bytes_) add_scale(kernels_.encode(from + at, codes));
  if (at < count) {
    float padded[byte_block] = {};
    std::uint8_t encoded[byte_block];
    std::copy(from + at, from + count, padded);
    add_scale(kernels_.encode(padded, encoded));
    std::memcpy(codes, encoded, nibbles_ ? bytes_ : count - at);
  }
  return most_bytes(count, sizeof(float));
}

void Block::decode(std::span<const std::byte> in, void* values, std::size_t count, std::size_t) const {
  if (in.size() != most_bytes(count, sizeof(float))) throw Corrupt("a chunk of blocks has the wrong length");
  auto* to = static_cast<float*>(values);
  const std::byte* scales = in.data();
  const auto* codes = reinterpret_cast<const std::uint8_t*>(in.data() + 4 * blocks(count));
  const auto next_scale = [&scales] {
    float scale;
    std::memcpy(&scale, scales, sizeof scale);
    scales += sizeof scale;
    return scale;
  };
  std::size_t at = 0;
  for (; at + block_ <= count; at += block_, codes += bytes_) kernels_.decode(codes, next_scale(), to + at);
  if (at < count) {
    float padded[byte_block];
    std::uint8_t encoded[byte_block] = {};
    std::memcpy(encoded, codes, nibbles_ ? bytes_ : count - at);
    kernels_.decode(encoded, next_scale(), padded);
    std::copy_n(padded, count - at, to + at);
  }
}

}  // namespace

std::unique_ptr<Codec> make_block(const Spec& spec) {
  switch (spec.kind) {
    case Kind::int4: return std::make_unique<Block>(spec, BlockFormat::int4, nibble_block, 2);
    case Kind::fp8_e4m3: return std::make_unique<Block>(spec, BlockFormat::e4m3, byte_block, 1);
    case Kind::fp8_e5m2: return std::make_unique<Block>(spec, BlockFormat::e5m2, byte_block, 1);
    default: return std::make_unique<Block>(spec, BlockFormat::int8, byte_block, 1);
  }
}

}  // namespace medley::compress
