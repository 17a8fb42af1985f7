// bf16: the upper half of each f32, rounded. No blocks, so every value keeps eight bits of precision whatever its
// neighbours are.
#include "compress/blocks.hpp"
#include "compress/codec.hpp"
#include "reduce/half.hpp"

namespace medley::compress {
namespace {

class Bf16 final : public Codec {
 public:
  using Codec::Codec;
  bool fixed_size() const override { return true; }
  std::size_t most_bytes(std::size_t count, std::size_t) const override { return 2 * count; }
  std::size_t encode(const void* values, std::size_t count, std::size_t, std::byte* out) const override {
    narrow_bf16(reinterpret_cast<std::uint16_t*>(out), static_cast<const float*>(values), count);
    return 2 * count;
  }
  void decode(std::span<const std::byte> in, void* values, std::size_t count, std::size_t) const override {
    if (in.size() != 2 * count) throw Corrupt("a chunk of bf16 has the wrong length");
    widen_half(static_cast<float*>(values), in.data(), DType::bf16, count);
  }
};

}  // namespace

std::unique_ptr<Codec> make_bf16(const Spec& spec) { return std::make_unique<Bf16>(spec); }

}  // namespace medley::compress
