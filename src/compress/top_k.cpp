// top-k: the values of largest magnitude of each chunk and their places; the others decode to zero. It has no error
// bound, and makes sense only with error feedback, which sends later what was left out.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "compress/codec.hpp"

namespace medley::compress {
namespace {

std::uint32_t magnitude(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFu; }

/// The k-th largest magnitude, by its bits: eleven at a time, from the top. NaN and infinity are the largest.
std::uint32_t kth_largest(const float* values, std::size_t count, std::size_t k) {
  std::uint32_t prefix = 0, mask = 0;
  for (const int shift : {20, 9, 0}) {
    const std::uint32_t width = shift == 0 ? 0x1FF : 0x7FF;
    std::array<std::uint32_t, 2048> bins{};
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t bits = magnitude(values[i]);
      if ((bits & mask) == prefix) ++bins[(bits >> shift) & width];
    }
    std::uint32_t bin = width;
    while (k > bins[bin]) k -= bins[bin--];
    prefix |= bin << shift;
    mask |= width << shift;
  }
  return prefix;
}

/// A chunk: the number of values, their places in ascending order (two bytes each), the values (four bytes each).
class TopK final : public Codec {
 public:
  using Codec::Codec;
  bool fixed_size() const override { return false; }
  std::size_t most_bytes(std::size_t count, std::size_t element) const override { return count * element; }

  std::size_t encode(const void* values, std::size_t count, std::size_t element, std::byte* out) const override {
    const auto* from = static_cast<const float*>(values);
    const auto wanted = static_cast<std::size_t>(std::ceil(spec().parameter * static_cast<double>(count)));
    const std::size_t k = std::clamp<std::size_t>(wanted, 1, count);
    const std::uint32_t least = kth_largest(from, count, k);
    if (least >= 0x7F800000u) return 0;  // more non-finite values than k: none may be lost
    std::size_t above = 0;
    for (std::size_t i = 0; i < count; ++i) above += magnitude(from[i]) > least;
    std::size_t ties = k - above;  // the first ones of those equal to the k-th
    return write(from, count, element, out, [&](float value) {
      const std::uint32_t bits = magnitude(value);
      return bits > least || (bits == least && ties > 0 && ties-- > 0);
    });
  }
  /// The sum of sparse parts is sparse: all of it is kept, so nothing is lost twice.
  std::size_t encode_result(const void* values, std::size_t count, std::size_t element, std::byte* out) const override {
    return write(static_cast<const float*>(values), count, element, out,
                 [](float value) { return magnitude(value) > 0; });
  }

  void decode(std::span<const std::byte> in, void* values, std::size_t count, std::size_t) const override {
    std::uint32_t k = 0;
    if (in.size() < sizeof k) throw Corrupt("a sparse chunk is too short");
    std::memcpy(&k, in.data(), sizeof k);
    if (k > count || in.size() != sizeof k + std::size_t{6} * k) throw Corrupt("a sparse chunk has the wrong length");
    auto* to = static_cast<float*>(values);
    std::fill_n(to, count, 0.0f);
    const std::byte* places = in.data() + sizeof k;
    const std::byte* kept = places + std::size_t{2} * k;
    for (std::uint32_t i = 0; i < k; ++i) {
      std::uint16_t place = 0;
      std::memcpy(&place, places + 2 * i, sizeof place);
      if (place >= count) throw Corrupt("a sparse chunk has a value outside of it");
      std::memcpy(to + place, kept + 4 * i, sizeof(float));
    }
  }

 private:
  template <class Keep>
  static std::size_t write(const float* from, std::size_t count, std::size_t element, std::byte* out, Keep keep) {
    std::array<std::uint16_t, chunk_values> places;
    std::uint32_t k = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (keep(from[i])) places[k++] = static_cast<std::uint16_t>(i);
    }
    const std::size_t bytes = sizeof k + std::size_t{6} * k;
    if (bytes >= count * element) return 0;
    std::memcpy(out, &k, sizeof k);
    std::memcpy(out + sizeof k, places.data(), std::size_t{2} * k);
    for (std::uint32_t i = 0; i < k; ++i) std::memcpy(out + sizeof k + 2 * k + 4 * i, from + places[i], sizeof(float));
    return bytes;
  }
};

}  // namespace

std::unique_ptr<Codec> make_top_k(const Spec& spec) { return std::make_unique<TopK>(spec); }

}  // namespace medley::compress
