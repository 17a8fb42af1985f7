#include "compress/codec.hpp"

#include <fmt/format.h>

#include <map>
#include <mutex>

namespace medley::compress {
namespace {

std::unique_ptr<Codec> make_codec(const Spec& spec) {
  if (const std::string why = why_unavailable(spec.kind); !why.empty()) throw Error(ErrorKind::unavailable, why);
  switch (spec.kind) {
    case Kind::bf16: return make_bf16(spec);
#ifdef MEDLEY_HAVE_LZ4
    case Kind::lz4: return make_lz4(spec);
#endif
#ifdef MEDLEY_HAVE_ZSTD
    case Kind::zstd: return make_zstd(spec);
#endif
#ifdef MEDLEY_HAVE_ZFP
    case Kind::zfp_rate:
    case Kind::zfp_accuracy: return make_zfp(spec);
#endif
    case Kind::top_k: return make_top_k(spec);
    default: return make_block(spec);
  }
}

[[maybe_unused]] std::string lacks(std::string_view codec, std::string_view package) {
  return fmt::format(
      "this build of Medley has no codec {}: {} was not found when it was configured; install it (./setup does) and "
      "build again",
      codec, package);
}

}  // namespace

std::string why_unavailable([[maybe_unused]] Kind kind) {
#ifndef MEDLEY_HAVE_LZ4
  if (kind == Kind::lz4) return lacks("lz4", "liblz4-dev");
#endif
#ifndef MEDLEY_HAVE_ZSTD
  if (kind == Kind::zstd) return lacks("zstd", "libzstd-dev");
#endif
#ifndef MEDLEY_HAVE_ZFP
  if (kind == Kind::zfp_rate || kind == Kind::zfp_accuracy) return lacks("zfp", "libzfp-dev");
#endif
  return {};
}

const Codec& codec(const Spec& spec) {
  // Codecs are immutable and few. They live as long as the process, so that routes and calls can point to their names.
  static std::mutex mutex;
  static auto* const made = new std::map<std::string, std::unique_ptr<Codec>>;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Codec>& one = (*made)[spec.text()];
  if (!one) one = make_codec(spec);
  return *one;
}

const Codec& codec_of(std::string_view algorithm) { return codec(parse_spec(algorithm.substr(1))); }

}  // namespace medley::compress
