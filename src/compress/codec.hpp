// One way to compress: encodes and decodes chunks of up to 16,384 values. One file per codec; frame.hpp puts chunks
// together and checks them. Lossy codecs work on f32, which the frame converts from and to f16 and bf16; lossless ones
// work on any element.
#pragma once

#include <cstddef>
#include <cstdint>
#include <medley/error.hpp>
#include <medley/export.hpp>
#include <medley/types.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "compress/error_bound.hpp"
#include "compress/spec.hpp"

namespace medley::compress {

/// Values of a chunk: an f32 chunk fits the first two caches together with its encoding, and an index fits 16 bits.
inline constexpr std::size_t chunk_values = 16384;

/// The data cannot be what a codec of this kind wrote.
struct MEDLEY_API Corrupt : Error {
  explicit Corrupt(const std::string& what) : Error(ErrorKind::system, "the compressed data are corrupt: " + what) {}
};

/// Immutable, so that every comm and thread shares one.
class Codec {
 public:
  explicit Codec(const Spec& spec) : spec_(spec), algorithm_(mark + spec.text()) {}
  virtual ~Codec() = default;
  Codec(const Codec&) = delete;
  Codec& operator=(const Codec&) = delete;

  const Spec& spec() const { return spec_; }
  bool lossy() const { return spec_.lossy(); }
  /// Its name as a route's algorithm: "+int8".
  std::string_view algorithm() const { return algorithm_; }
  bool takes(DType dtype) const {
    return !lossy() || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
  }
  /// The type in which it encodes and in which reductions are computed.
  DType work_type(DType dtype) const { return lossy() ? DType::f32 : dtype; }
  std::optional<ErrorBound> bound(DType dtype) const { return bound_of(spec_, dtype); }

  /// Whether `count` values always take exactly most_bytes(): then nobody needs to exchange sizes.
  virtual bool fixed_size() const = 0;
  /// The most bytes that encode() writes.
  virtual std::size_t most_bytes(std::size_t count, std::size_t element) const = 0;
  /// Encodes `count` values of `element` bytes; returns the bytes written, or 0 where they are better stored as they
  /// are (never for a codec of fixed size). The output holds most_bytes().
  virtual std::size_t encode(const void* values, std::size_t count, std::size_t element, std::byte* out) const = 0;
  /// The same for the result of a reduction, where a second selection would lose what the first one kept.
  virtual std::size_t encode_result(const void* values, std::size_t count, std::size_t element, std::byte* out) const {
    return encode(values, count, element, out);
  }
  /// Throws Corrupt; reads nothing outside `in` and writes nothing outside `count` values, whatever `in` holds.
  virtual void decode(std::span<const std::byte> in, void* values, std::size_t count, std::size_t element) const = 0;

 private:
  Spec spec_;
  std::string algorithm_;
};

/// The codec of this description, made once in a process. Throws Error(unavailable) where this build lacks its library.
MEDLEY_API const Codec& codec(const Spec& spec);
/// The codec of a compressed route's algorithm, such as "+int8".
const Codec& codec_of(std::string_view algorithm);
/// Why this build lacks a codec; empty if it has it.
MEDLEY_API std::string why_unavailable(Kind kind);

// The codecs, one file each.
std::unique_ptr<Codec> make_bf16(const Spec& spec);
MEDLEY_API std::unique_ptr<Codec> make_block(const Spec& spec);  ///< fp8, int8, int4
std::unique_ptr<Codec> make_lz4(const Spec& spec);
std::unique_ptr<Codec> make_zstd(const Spec& spec);
std::unique_ptr<Codec> make_zfp(const Spec& spec);
std::unique_ptr<Codec> make_top_k(const Spec& spec);

}  // namespace medley::compress
