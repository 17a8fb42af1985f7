// What every codec promises: its error bound, exactness if it is lossless, non-finite values that stay non-finite, the
// same bits on every instruction set, and error feedback that loses nothing over time.
#include <gtest/gtest.h>
#include <hwy/targets.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "compress/tensors.hpp"

namespace medley::compress::test {
namespace {

constexpr DType floats[] = {DType::f32, DType::f16, DType::bf16};

/// The largest magnitude of each block, counted from the start of every chunk as the codec does.
std::vector<float> block_maxima(const std::vector<std::byte>& elements, DType dtype, int block) {
  const std::size_t count = elements.size() / size_of(dtype);
  std::vector<float> maxima(count);
  for (std::size_t chunk = 0; chunk < count; chunk += chunk_values) {
    const std::size_t end = std::min(count, chunk + chunk_values);
    for (std::size_t begin = chunk; begin < end; begin += static_cast<std::size_t>(block)) {
      const std::size_t last = std::min(end, begin + static_cast<std::size_t>(block));
      float most = 0;
      for (std::size_t i = begin; i < last; ++i) most = std::max(most, std::abs(get(elements, i, dtype)));
      std::fill(maxima.begin() + static_cast<std::ptrdiff_t>(begin), maxima.begin() + static_cast<std::ptrdiff_t>(last),
                most);
    }
  }
  return maxima;
}

void expect_within_bound(const Codec& codec, DType dtype, const std::vector<std::byte>& in) {
  const auto bound = codec.bound(dtype);
  const std::size_t count = in.size() / size_of(dtype);
  const auto out = decode(codec, dtype, static_cast<std::int64_t>(count), encode(codec, dtype, in));
  if (!codec.lossy()) {
    ASSERT_EQ(in, out) << codec.spec().text();
    return;
  }
  if (!bound) return;
  const std::vector<float> maxima = block_maxima(in, dtype, bound->block);
  for (std::size_t i = 0; i < count; ++i) {
    const double x = get(in, i, dtype), y = get(out, i, dtype);
    ASSERT_LE(std::abs(x - y), bound->at(x, maxima[i])) << codec.spec().text() << " of " << name(dtype) << ", value "
                                                        << i << " of " << count << ": " << x << " became " << y;
  }
}

RC_GTEST_PROP(Codecs, decode_within_their_bound, ()) {
  const auto kind = static_cast<Values>(*rc::gen::inRange(0, value_kinds));
  const auto count = *rc::gen::element<std::int64_t>(0, 1, 63, 64, 65, 255, 256, 257, 1000, 16383, 16384, 16385, 40000);
  core::Random random(*rc::gen::arbitrary<std::uint64_t>());
  const std::vector<float> values = make_values(kind, count, random);
  for (const Codec* codec : usable_codecs()) {
    for (const DType dtype : floats) expect_within_bound(*codec, dtype, pack(values, dtype));
  }
}

TEST(Codecs, that_are_lossless_take_every_type_and_any_bits) {
  core::Random random(7);
  for (const DType dtype : {DType::u8, DType::i32, DType::i64, DType::f64, DType::f16, DType::f32}) {
    std::vector<std::byte> bits(size_of(dtype) * 20001);
    for (std::byte& byte : bits) byte = static_cast<std::byte>(random.bits() & (random.bits() % 2 ? 0xFF : 0x01));
    for (const Codec* codec : usable_codecs()) {
      if (codec->lossy()) {
        EXPECT_EQ(codec->takes(dtype), dtype == DType::f32 || dtype == DType::f16);
      } else {
        EXPECT_EQ(bits, decode(*codec, dtype, 20001, encode(*codec, dtype, bits)))
            << codec->spec().text() << " of " << name(dtype);
      }
    }
  }
}

RC_GTEST_PROP(Codecs, keep_non_finite_values_non_finite, ()) {
  const auto count = *rc::gen::element<std::int64_t>(1, 64, 300, 20000);
  core::Random random(*rc::gen::arbitrary<std::uint64_t>());
  std::vector<float> values = make_values(Values::random, count, random);
  std::vector<std::size_t> bad;
  const int how_many = *rc::gen::element(1, 3, 400);  // more than top_k would keep
  for (int i = 0; i < how_many; ++i) {
    bad.push_back(random.bits() % values.size());
    const float odd[] = {INFINITY, -INFINITY, NAN, -NAN};
    values[bad.back()] = odd[random.bits() % 4];
  }
  for (const Codec* codec : usable_codecs()) {
    for (const DType dtype : floats) {
      const auto out = decode(*codec, dtype, count, encode(*codec, dtype, pack(values, dtype)));
      for (const std::size_t i : bad) {
        RC_LOG() << codec->spec().text() << " of " << name(dtype) << " at " << i;
        RC_ASSERT(!std::isfinite(get(out, i, dtype)));
      }
    }
  }
}

TEST(Codecs, keep_finite_values_finite) {
  core::Random random(3);
  for (const Values kind : {Values::huge, Values::mixed}) {
    std::vector<float> values = make_values(kind, 5000, random);
    values[17] = std::numeric_limits<float>::max();
    for (const Codec* codec : usable_codecs()) {
      for (const DType dtype : floats) {
        const auto out = decode(*codec, dtype, 5000, encode(*codec, dtype, pack(values, dtype)));
        for (std::size_t i = 0; i < 5000; ++i) ASSERT_TRUE(std::isfinite(get(out, i, dtype))) << codec->spec().text();
      }
    }
  }
}

TEST(Codecs, give_the_same_bits_on_every_instruction_set) {
  core::Random random(5);
  const std::vector<std::byte> in = pack(make_values(Values::mixed, 5000, random), DType::f32);
  const std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
  // The kernels are chosen when a codec is made, so each instruction set needs one of its own.
  for (const Kind kind : {Kind::int8, Kind::int4, Kind::fp8_e4m3, Kind::fp8_e5m2}) {
    std::vector<std::byte> first_frame, first_values;
    for (const std::int64_t target : targets) {
      hwy::SetSupportedTargetsForTest(target);
      const auto codec = make_block({kind, 0});
      const auto frame = encode(*codec, DType::f32, in);
      const auto values = decode(*codec, DType::f32, 5000, frame);
      if (first_frame.empty()) first_frame = frame, first_values = values;
      EXPECT_EQ(frame, first_frame);
      EXPECT_EQ(values, first_values);
    }
    hwy::SetSupportedTargetsForTest(0);
  }
}

TEST(Codecs, of_fixed_size_have_the_ratio_that_the_documentation_says) {
  const auto ratio = [](const char* text) {
    return static_cast<double>(most_frame_bytes(codec(parse_spec(text)), DType::f32, 1 << 22)) / (4 << 22);
  };
  EXPECT_NEAR(ratio("bf16"), 0.5, 1e-4);
  EXPECT_NEAR(ratio("int8"), 0.2539, 1e-4);
  EXPECT_NEAR(ratio("fp8_e4m3"), 0.2539, 1e-4);
  EXPECT_NEAR(ratio("int4"), 0.1406, 1e-4);
}

/// What a codec loses is added to the next values, so the sum of what arrives stays near the sum of what was sent.
TEST(ErrorFeedback, sends_later_what_was_lost) {
  core::Random random(11);
  constexpr std::int64_t count = 20000;
  for (const Codec* codec : usable_codecs()) {
    if (!codec->lossy()) continue;
    std::vector<float> residual(count);
    std::vector<double> sent(count), arrived(count);
    for (int step = 0; step < 60; ++step) {
      const std::vector<std::byte> in = pack(make_values(Values::random, count, random), DType::f32);
      const auto out = decode(*codec, DType::f32, count, encode(*codec, DType::f32, in, &residual));
      for (std::size_t i = 0; i < count; ++i) {
        sent[i] += static_cast<double>(get(in, i, DType::f32));
        arrived[i] += static_cast<double>(get(out, i, DType::f32));
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_NEAR(sent[i], arrived[i] + static_cast<double>(residual[i]), 1e-2) << codec->spec().text();
    }
  }
}

TEST(ErrorFeedback, forgets_non_finite_values) {
  std::vector<float> residual(300);
  std::vector<float> values(300, 1.0f);
  values[10] = NAN;
  const Codec& int8 = codec(parse_spec("int8"));
  encode(int8, DType::f32, pack(values, DType::f32), &residual);
  EXPECT_TRUE(std::all_of(residual.begin(), residual.end(), [](float value) { return std::isfinite(value); }));
}

TEST(TopK, keeps_the_largest_of_each_chunk) {
  core::Random random(2);
  const Codec& top = codec(parse_spec("top_k:0.01"));
  std::vector<float> values = make_values(Values::random, 16384, random);
  values[4000] = 1e6f;
  const auto out = decode(top, DType::f32, 16384, encode(top, DType::f32, pack(values, DType::f32)));
  std::size_t kept = 0;
  float least_kept = INFINITY, most_lost = 0;
  for (std::size_t i = 0; i < 16384; ++i) {
    const float value = get(out, i, DType::f32);
    if (value != 0) {
      ++kept;
      EXPECT_EQ(value, values[i]);
      least_kept = std::min(least_kept, std::abs(value));
    } else {
      most_lost = std::max(most_lost, std::abs(values[i]));
    }
  }
  EXPECT_EQ(kept, 164u);  // 1 % of 16384, rounded up
  EXPECT_GE(least_kept, most_lost);
  EXPECT_EQ(get(out, 4000, DType::f32), 1e6f);
}

}  // namespace
}  // namespace medley::compress::test
