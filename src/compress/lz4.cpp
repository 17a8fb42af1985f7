// LZ4 over shuffled bytes: lossless and fast.
#ifdef MEDLEY_HAVE_LZ4
#include <lz4.h>

#include "compress/codec.hpp"
#include "compress/shuffle.hpp"

namespace medley::compress {
namespace {

class Lz4 final : public Codec {
 public:
  using Codec::Codec;
  bool fixed_size() const override { return false; }
  std::size_t most_bytes(std::size_t count, std::size_t element) const override { return count * element; }
  std::size_t encode(const void* values, std::size_t count, std::size_t element, std::byte* out) const override {
    const auto chunk = std::make_unique_for_overwrite<ShuffledChunk>();
    shuffle(chunk->bytes, static_cast<const std::byte*>(values), count, element);
    const int all = static_cast<int>(count * element);
    // 0 where the output does not fit, which is as long as the input.
    const int written =
        LZ4_compress_default(reinterpret_cast<const char*>(chunk->bytes), reinterpret_cast<char*>(out), all, all);
    return written < all ? static_cast<std::size_t>(written) : 0;
  }
  void decode(std::span<const std::byte> in, void* values, std::size_t count, std::size_t element) const override {
    const auto chunk = std::make_unique_for_overwrite<ShuffledChunk>();
    const int all = static_cast<int>(count * element);
    const int read = LZ4_decompress_safe(reinterpret_cast<const char*>(in.data()),
                                         reinterpret_cast<char*>(chunk->bytes), static_cast<int>(in.size()), all);
    if (read != all) throw Corrupt("LZ4 cannot decompress a chunk");
    unshuffle(static_cast<std::byte*>(values), chunk->bytes, count, element);
  }
};

}  // namespace

std::unique_ptr<Codec> make_lz4(const Spec& spec) { return std::make_unique<Lz4>(spec); }

}  // namespace medley::compress
#endif
