// How codecs and permissions are written.
#include <gtest/gtest.h>

#include <medley/error.hpp>

#include "compress/spec.hpp"

namespace medley::compress {
namespace {

TEST(Specs, read_back_as_they_are_written) {
  for (const char* text : {"bf16", "fp8_e4m3", "fp8_e5m2", "int8", "int4", "lz4", "zstd", "zfp_rate:8",
                           "zfp_accuracy:0.001", "top_k:0.01"}) {
    EXPECT_EQ(parse_spec(text).text(), text);
  }
}

TEST(Specs, that_make_no_sense_are_refused_with_a_sentence) {
  for (const char* text : {"", "int9", "int8:3", "zfp_rate", "zfp_rate:", "zfp_rate:99", "zfp_accuracy:-1", "top_k:2",
                           "top_k:x", "zfp_accuracy:nan"}) {
    try {
      parse_spec(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid);
      EXPECT_NE(std::string(error.what()).find("codec"), std::string::npos) << error.what();
    }
  }
}

TEST(Specs, are_found_behind_backends_and_pairs) {
  const auto split = [](std::string_view route) { return route.substr(std::min(route.size(), find_codec(route))); };
  EXPECT_EQ(split("mpi+int8"), "+int8");
  EXPECT_EQ(split("shm+mpi+zfp_rate:8"), "+zfp_rate:8");
  EXPECT_EQ(split("shm+mpi"), "");
  EXPECT_EQ(split("mpi"), "");
}

TEST(Permissions, by_error_allow_what_has_a_small_enough_bound) {
  const Permission one_percent = Permission::parse("error:0.01");
  EXPECT_TRUE(one_percent.allows(parse_spec("int8")));
  EXPECT_TRUE(one_percent.allows(parse_spec("bf16")));
  EXPECT_TRUE(one_percent.allows(parse_spec("lz4")));
  EXPECT_FALSE(one_percent.allows(parse_spec("int4")));
  EXPECT_FALSE(one_percent.allows(parse_spec("fp8_e4m3")));
  EXPECT_FALSE(one_percent.allows(parse_spec("zfp_rate:8"))) << "it has no bound";
  EXPECT_FALSE(one_percent.allows(parse_spec("zfp_accuracy:0.001"))) << "an absolute bound says nothing relative";
  EXPECT_FALSE(one_percent.allows(parse_spec("top_k:0.5")));
}

TEST(Permissions, by_name_allow_those_alone) {
  const Permission listed = Permission::parse("int4,top_k:0.01");
  EXPECT_TRUE(listed.allows(parse_spec("int4")));
  EXPECT_FALSE(listed.allows(parse_spec("int8")));
  EXPECT_FALSE(Permission().allows(parse_spec("bf16"))) << "nothing lossy without permission";
  EXPECT_EQ(listed.text(), "int4,top_k:0.01");
  EXPECT_THROW(Permission::parse("error:2"), Error);
  EXPECT_THROW(Permission::parse("int8,"), Error) << "an empty name";
}

}  // namespace
}  // namespace medley::compress
