#include "cost/gemm.hpp"

#include <gtest/gtest.h>

#include <medley/error.hpp>

namespace medley::cost {
namespace {

TEST(Gemm, LinearLayerMapsToTnNnNt) {
  const Gemm forward = linear_forward("y", 4096, 1600, 6400);
  EXPECT_EQ(forward.layout, GemmLayout::TN);
  EXPECT_EQ(forward.m, 6400);
  EXPECT_EQ(forward.n, 4096);
  EXPECT_EQ(forward.k, 1600);
  const Gemm dgrad = linear_dgrad("dx", 4096, 1600, 6400);
  EXPECT_EQ(dgrad.layout, GemmLayout::NN);
  EXPECT_EQ(dgrad.m, 1600);
  EXPECT_EQ(dgrad.k, 6400);
  const Gemm wgrad = linear_wgrad("dw", 4096, 1600, 6400);
  EXPECT_EQ(wgrad.layout, GemmLayout::NT);
  EXPECT_EQ(wgrad.n, 6400);
  EXPECT_EQ(wgrad.k, 4096);
  EXPECT_DOUBLE_EQ(forward.flops(), dgrad.flops());
  EXPECT_DOUBLE_EQ(forward.flops(), wgrad.flops());
}

TEST(Gemm, OddVocabularyMisalignsADifferentOperandInEachDirection) {
  const Gemm::Alignment forward = linear_forward("logits", 4096, 2048, 50257).alignment();
  EXPECT_EQ(forward.a, 64);
  EXPECT_EQ(forward.b, 64);
  EXPECT_EQ(forward.c, 1);  // the logits' rows
  const Gemm::Alignment dgrad = linear_dgrad("logits", 4096, 2048, 50257).alignment();
  EXPECT_EQ(dgrad.a, 64);
  EXPECT_EQ(dgrad.b, 1);  // their gradient's rows
  const Gemm::Alignment wgrad = linear_wgrad("logits", 4096, 2048, 50257).alignment();
  EXPECT_EQ(wgrad.b, 1);
  EXPECT_EQ(wgrad.c, 64);
  EXPECT_EQ(wgrad.least(), 1);
}

TEST(Gemm, BytesCountEachOperandOnce) {
  const Gemm gemm{.m = 10, .n = 20, .k = 30, .batch = 2, .type = GemmType::fp8};
  EXPECT_DOUBLE_EQ(gemm.bytes(), 2.0 * (10 * 30 + 30 * 20 + 2 * 10 * 20));
}

TEST(Gemm, ImpossibleSizesAreRefusedWithTheRule) {
  for (const Gemm& bad : {Gemm{.m = 0, .n = 1, .k = 1}, Gemm{.m = 1, .n = -4, .k = 1},
                          Gemm{.m = 1, .n = 1, .k = std::int64_t{1} << 40}, Gemm{.m = 1, .n = 1, .k = 1, .batch = 0}}) {
    try {
      check(bad);
      FAIL() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid);
      EXPECT_NE(std::string(error.what()).find("must lie between 1 and"), std::string::npos);
    }
  }
}

TEST(Gemm, NamesReadBack) {
  EXPECT_EQ(parse_gemm_layout("nt"), GemmLayout::NT);
  EXPECT_EQ(parse_gemm_type("FP8"), GemmType::fp8);
  EXPECT_THROW(parse_gemm_layout("TT"), Error);
  EXPECT_THROW(parse_gemm_type("int8"), Error);
}

}  // namespace
}  // namespace medley::cost
