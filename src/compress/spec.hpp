// The name of a codec with its parameter, as users write it: int8, zfp_accuracy:1e-3, top_k:0.01. Parsed here for
// calls, rules and route tables; needs none of the codecs' libraries.
#pragma once

#include <cstdint>
#include <medley/export.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace medley::compress {

/// The numbers are part of the frame format.
enum class Kind : std::uint8_t { bf16 = 1, fp8_e4m3, fp8_e5m2, int8, int4, lz4, zstd, zfp_rate, zfp_accuracy, top_k };

struct MEDLEY_API Spec {
  Kind kind{};
  double parameter = 0;  ///< bits per value, absolute tolerance, or fraction kept; 0 for codecs without one

  bool lossy() const { return kind != Kind::lz4 && kind != Kind::zstd; }
  std::string text() const;  ///< canonical
  bool operator==(const Spec&) const = default;
};

/// Throws Error(invalid) with what was wrong and what there is.
MEDLEY_API Spec parse_spec(std::string_view text);

/// A compressed route is written BACKEND+CODEC. Internally the codec is the route's algorithm, with a plus sign in
/// front: "+int8".
inline constexpr char mark = '+';
inline bool is_compressed(std::string_view algorithm) { return !algorithm.empty() && algorithm.front() == mark; }
/// In Options::compress and as algorithm: whatever rules and table say, this call is not compressed.
inline constexpr std::string_view none = "none";
inline constexpr std::string_view forbidden = "+none";

/// Where the codec begins in BACKEND+CODEC, the plus sign included; npos if it names none. A pair of backends has a
/// plus sign too.
MEDLEY_API std::size_t find_codec(std::string_view route);

/// Which codecs `auto` may choose: a list of codecs, or every codec whose error is at most `error:FRACTION` of the
/// largest value of a block. Lossy codecs are chosen only where such a permission exists.
class MEDLEY_API Permission {
 public:
  Permission() = default;  ///< none
  /// "int8,bf16" or "error:0.01". Throws Error(invalid).
  static Permission parse(std::string_view text);
  bool allows(const Spec& spec) const;
  std::string text() const;

 private:
  std::vector<Spec> listed_;
  std::optional<double> error_;
};

/// Whether a compressed route of a table is allowed. A codec that this version does not know is not.
MEDLEY_API bool allows(const Permission& permission, std::string_view algorithm);

}  // namespace medley::compress
