// How fast each codec is on one core: bytes of input per second against memcpy of the same 64 MiB, measured in turn in
// one run. zfp is
// measured against the library alone.   bench_codecs [rounds]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#ifdef MEDLEY_HAVE_ZFP
#include <zfp.h>
#endif

#include "base/random.hpp"
#include "compress/frame.hpp"

namespace {

using namespace medley;
using namespace medley::compress;

constexpr std::int64_t count = 16 << 20;  // f32: 64 MiB

double seconds(const std::function<void()>& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

struct Row {
  std::string name;
  std::function<void()> run;
  std::vector<double> times{};
  double median() {
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
    return times[times.size() / 2];
  }
};

#ifdef MEDLEY_HAVE_ZFP
void zfp_alone(const Spec& spec, std::vector<float>& values, std::vector<std::byte>& buffer, bool decode) {
  zfp_stream* stream = zfp_stream_open(nullptr);
  zfp_field* field = zfp_field_1d(values.data(), zfp_type_float, values.size());
  if (spec.kind == Kind::zfp_rate) {
    zfp_stream_set_rate(stream, spec.parameter, zfp_type_float, 1, zfp_false);
  } else {
    zfp_stream_set_accuracy(stream, spec.parameter);
  }
  buffer.resize(zfp_stream_maximum_size(stream, field));
  bitstream* bits = stream_open(buffer.data(), buffer.size());
  zfp_stream_set_bit_stream(stream, bits);
  zfp_stream_rewind(stream);
  decode ? zfp_decompress(stream, field) : zfp_compress(stream, field);
  stream_close(bits);
  zfp_field_free(field);
  zfp_stream_close(stream);
}
#endif

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 9;
  core::Random random(1);
  std::vector<float> values(count), out(count);
  for (float& value : values) {  // a gradient's bell shape
    value = 0;
    for (int i = 0; i < 4; ++i) value += static_cast<float>(random.bits() >> 40) * 0x1p-24f - 0.5f;
  }
  std::vector<Row> rows;
  rows.push_back({"memcpy", [&] { std::memcpy(out.data(), values.data(), count * sizeof(float)); }});
  std::vector<std::vector<std::byte>> frames;
  frames.reserve(32);
  for (const char* text : {"bf16", "fp8_e4m3", "fp8_e5m2", "int8", "int4", "lz4", "zstd", "zfp_rate:8",
                           "zfp_accuracy:0.001", "top_k:0.01"}) {
    const Spec spec = parse_spec(text);
    if (const std::string why = why_unavailable(spec.kind); !why.empty()) {
      fmt::print("{}\n", why);
      continue;
    }
    const Codec& one = codec(spec);
    std::vector<std::byte>& frame = frames.emplace_back(most_frame_bytes(one, DType::f32, count));
    rows.push_back({fmt::format("{} encode", text), [&] {
                      FrameWriter writer(one, DType::f32, count, frame.data());
                      for (std::size_t at = 0; !writer.complete(); at += chunk_values) writer.add(values.data() + at);
                      writer.finish();
                    }});
    rows.push_back({fmt::format("{} decode", text), [&] {
                      const FrameReader reader(one, DType::f32, count, frame);
                      for (std::int64_t i = 0; i < reader.chunks(); ++i)
                        reader.read(i, out.data() + static_cast<std::size_t>(i) * chunk_values);
                    }});
#ifdef MEDLEY_HAVE_ZFP
    if (spec.kind == Kind::zfp_rate || spec.kind == Kind::zfp_accuracy) {
      std::vector<std::byte>& buffer = frames.emplace_back();
      rows.push_back({fmt::format("{} library alone, encode", text),
                      [&values, &buffer, spec] { zfp_alone(spec, values, buffer, false); }});
      rows.push_back({fmt::format("{} library alone, decode", text),
                      [&out, &buffer, spec] { zfp_alone(spec, out, buffer, true); }});
    }
#endif
  }
  for (Row& row : rows) row.run();  // pages and caches
  for (int round = 0; round < rounds; ++round) {
    for (Row& row : rows) row.times.push_back(seconds(row.run));
  }
  const double copy = rows.front().median();
  for (Row& row : rows)
    fmt::print("{:<42} {:6.2f} GB/s  {:6.1f} % of memcpy\n", row.name, 0.0671 / row.median(),
               100 * copy / row.median());
}
