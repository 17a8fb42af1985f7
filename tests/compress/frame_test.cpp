// Frames find every flipped bit and every truncation, and refuse frames of other calls.
#include <gtest/gtest.h>

#include "compress/tensors.hpp"

namespace medley::compress::test {
namespace {

TEST(Frames, with_a_flipped_bit_are_refused) {
  core::Random random(1);
  for (const Codec* codec : usable_codecs()) {
    const auto in = pack(make_values(Values::smooth, 20000, random), DType::f32);
    const auto frame = encode(*codec, DType::f32, in);
    for (int trial = 0; trial < 300; ++trial) {
      auto damaged = frame;
      // The whole header first
      const std::size_t at = trial < 40 ? static_cast<std::size_t>(trial) : random.bits() % frame.size();
      damaged[at] ^= static_cast<std::byte>(1u << (random.bits() % 8));
      EXPECT_THROW(decode(*codec, DType::f32, 20000, damaged), Error) << codec->spec().text() << ", byte " << at;
    }
  }
}

TEST(Frames, that_are_truncated_are_refused) {
  core::Random random(1);
  for (const Codec* codec : usable_codecs()) {
    const auto in = pack(make_values(Values::smooth, 20000, random), DType::f32);
    const auto frame = encode(*codec, DType::f32, in);
    for (int trial = 0; trial < 100; ++trial) {
      auto damaged = frame;
      damaged.resize(trial < 41 ? static_cast<std::size_t>(trial) : random.bits() % frame.size());
      EXPECT_THROW(decode(*codec, DType::f32, 20000, damaged), Error) << codec->spec().text();
    }
  }
}

TEST(Frames, of_another_call_are_a_mismatch) {
  const Codec &int8 = codec(parse_spec("int8")), &fp8 = codec(parse_spec("fp8_e4m3"));
  const std::vector<std::byte> frame = encode(int8, DType::f32, std::vector<std::byte>(4 * 512));
  const auto kind = [&](const Codec& codec, DType dtype, std::int64_t count) {
    try {
      decode(codec, dtype, count, frame);
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::invalid;
  };
  EXPECT_EQ(kind(fp8, DType::f32, 512), ErrorKind::mismatch);
  EXPECT_EQ(kind(int8, DType::bf16, 512), ErrorKind::mismatch);
  EXPECT_EQ(kind(int8, DType::f32, 600), ErrorKind::mismatch);
}

TEST(Frames, of_incompressible_data_are_hardly_longer_than_the_data) {
  core::Random random(9);
  std::vector<std::byte> noise(4 * 100000);
  for (std::byte& byte : noise) byte = static_cast<std::byte>(random.bits());
  for (const Codec* codec : usable_codecs()) {
    if (codec->lossy()) continue;
    EXPECT_LE(encode(*codec, DType::i32, noise).size(), noise.size() + 128) << codec->spec().text();
  }
}

TEST(Frames, of_smooth_data_are_short) {
  core::Random random(9);
  const auto in = pack(make_values(Values::smooth, 100000, random), DType::f32);
  for (const Codec* codec : usable_codecs())
    EXPECT_LT(encode(*codec, DType::f32, in).size(), in.size()) << codec->spec().text();
}

}  // namespace
}  // namespace medley::compress::test
