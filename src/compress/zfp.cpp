// zfp on one-dimensional f32: fixed rate (no error bound) or fixed accuracy (absolute error at most the tolerance).
#ifdef MEDLEY_HAVE_ZFP
#include <zfp.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "compress/codec.hpp"

namespace medley::compress {
namespace {

struct CloseZfp {
  void operator()(zfp_stream* stream) const { zfp_stream_close(stream); }
  void operator()(zfp_field* field) const { zfp_field_free(field); }
  void operator()(bitstream* bits) const { stream_close(bits); }
};

/// zfp's own objects for one chunk. They are small; the values and the bytes are the caller's.
struct Open {
  Open(const Spec& spec, float* values, std::size_t count)
      : stream(zfp_stream_open(nullptr)), field(zfp_field_1d(values, zfp_type_float, count)) {
    if (spec.kind == Kind::zfp_rate) {
      zfp_stream_set_rate(stream.get(), spec.parameter, zfp_type_float, 1, zfp_false);
    } else {
      zfp_stream_set_accuracy(stream.get(), spec.parameter);
    }
  }
  std::size_t most() const { return zfp_stream_maximum_size(stream.get(), field.get()); }
  void use(std::byte* bytes, std::size_t size) {
    bits.reset(stream_open(bytes, size));
    zfp_stream_set_bit_stream(stream.get(), bits.get());
    zfp_stream_rewind(stream.get());
  }
  std::unique_ptr<zfp_stream, CloseZfp> stream;
  std::unique_ptr<zfp_field, CloseZfp> field;
  std::unique_ptr<bitstream, CloseZfp> bits;
};

class Zfp final : public Codec {
 public:
  using Codec::Codec;
  bool fixed_size() const override { return false; }
  std::size_t most_bytes(std::size_t count, std::size_t element) const override { return count * element; }

  std::size_t encode(const void* values, std::size_t count, std::size_t element, std::byte* out) const override {
    auto* from = static_cast<float*>(const_cast<void*>(values));  // zfp only reads it
    if (!encodable(from, count)) return 0;
    Open zfp(spec(), from, count);
    // zfp writes whole words, so its buffer may be longer than what remains of the output.
    const auto buffer = std::make_unique_for_overwrite<std::byte[]>(zfp.most());
    zfp.use(buffer.get(), zfp.most());
    const std::size_t written = zfp_compress(zfp.stream.get(), zfp.field.get());
    if (written == 0 || written >= count * element) return 0;
    std::memcpy(out, buffer.get(), written);
    return written;
  }

  void decode(std::span<const std::byte> in, void* values, std::size_t count, std::size_t) const override {
    if (in.empty()) throw Corrupt("a chunk of zfp is empty");
    Open zfp(spec(), static_cast<float*>(values), count);
    // Whatever the bits say, zfp reads at most the largest size of a stream: with zeros up to there it stays inside.
    const std::size_t most = std::max(zfp.most(), in.size()) + 64;
    const auto buffer = std::make_unique<std::byte[]>(most);
    std::memcpy(buffer.get(), in.data(), in.size());
    zfp.use(buffer.get(), most);
    if (zfp_decompress(zfp.stream.get(), zfp.field.get()) == 0) throw Corrupt("zfp cannot decompress a chunk");
  }

 private:
  /// zfp has no code for infinity and NaN. Its blocks share an exponent, and its integers have 30 bits: a tolerance far
  /// below the largest value cannot be kept. Such chunks are stored as they are.
  bool encodable(const float* values, std::size_t count) const {
    float largest = 0;
    bool finite = true;
    for (std::size_t i = 0; i < count; ++i) {
      finite = finite && std::isfinite(values[i]);
      largest = std::max(largest, std::abs(values[i]));
    }
    if (!finite || largest > std::numeric_limits<float>::max() / 4) return false;
    return spec().kind == Kind::zfp_rate || spec().parameter >= static_cast<double>(largest) * 0x1p-20;
  }
};

}  // namespace

std::unique_ptr<Codec> make_zfp(const Spec& spec) { return std::make_unique<Zfp>(spec); }

}  // namespace medley::compress
#endif
