// zstd over shuffled bytes: lossless, slower than LZ4 and smaller.
#ifdef MEDLEY_HAVE_ZSTD
#include <zstd.h>

#include "compress/codec.hpp"
#include "compress/shuffle.hpp"

namespace medley::compress {
namespace {

constexpr int fastest_level = 1;  // higher levels save a few percent of floats' bytes at several times the time

struct FreeContexts {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

/// zstd's contexts take longer to make than a chunk to compress, so each thread keeps one of each.
ZSTD_CCtx* compressing() {
  thread_local const std::unique_ptr<ZSTD_CCtx, FreeContexts> own(ZSTD_createCCtx());
  return own.get();
}
ZSTD_DCtx* decompressing() {
  thread_local const std::unique_ptr<ZSTD_DCtx, FreeContexts> own(ZSTD_createDCtx());
  return own.get();
}

class Zstd final : public Codec {
 public:
  using Codec::Codec;
  bool fixed_size() const override { return false; }
  std::size_t most_bytes(std::size_t count, std::size_t element) const override { return count * element; }
  std::size_t encode(const void* values, std::size_t count, std::size_t element, std::byte* out) const override {
    const auto chunk = std::make_unique_for_overwrite<ShuffledChunk>();
    shuffle(chunk->bytes, static_cast<const std::byte*>(values), count, element);
    const std::size_t all = count * element;
    const std::size_t written = ZSTD_compressCCtx(compressing(), out, all, chunk->bytes, all, fastest_level);
    return ZSTD_isError(written) || written >= all ? 0 : written;  // it fails where the output would be longer
  }
  void decode(std::span<const std::byte> in, void* values, std::size_t count, std::size_t element) const override {
    const auto chunk = std::make_unique_for_overwrite<ShuffledChunk>();
    const std::size_t all = count * element;
    const std::size_t read = ZSTD_decompressDCtx(decompressing(), chunk->bytes, all, in.data(), in.size());
    if (ZSTD_isError(read) || read != all) throw Corrupt("zstd cannot decompress a chunk");
    unshuffle(static_cast<std::byte*>(values), chunk->bytes, count, element);
  }
};

}  // namespace

std::unique_ptr<Codec> make_zstd(const Spec& spec) { return std::make_unique<Zstd>(spec); }

}  // namespace medley::compress
#endif
