// What Medley sets in UCX's configuration, and what it leaves to the user.
#include "backends/ucx/config.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace medley::ucx {
namespace {

class UcxConfig : public testing::Test {
 protected:
  UcxConfig() {
    unsetenv("UCX_TLS");
    unsetenv("UCX_RNDV_THRESH");
  }
  ~UcxConfig() override {
    unsetenv("UCX_TLS");
    unsetenv("UCX_RNDV_THRESH");
  }
};

TEST_F(UcxConfig, RanksOfOneHostUseSharedMemoryOnlyAndCopyUpTo32KiB) {
  const Config config = read_config(true);
  EXPECT_EQ(value_of(config, "TLS"), "shm,self");
  EXPECT_EQ(value_of(config, "RNDV_THRESH"), "32769");
}

TEST_F(UcxConfig, BetweenHostsUcxChooses) {
  const Config config = read_config(false);
  EXPECT_EQ(value_of(config, "TLS"), "all");
  EXPECT_EQ(value_of(config, "RNDV_THRESH"), "auto");
}

TEST_F(UcxConfig, WhatTheUserSetStays) {
  setenv("UCX_RNDV_THRESH", "1024", 1);
  EXPECT_EQ(value_of(read_config(true), "RNDV_THRESH"), "1K");
  setenv("UCX_TLS", "tcp,self", 1);
  unsetenv("UCX_RNDV_THRESH");
  const Config config = read_config(true);
  EXPECT_EQ(value_of(config, "TLS"), "tcp,self");
  EXPECT_EQ(value_of(config, "RNDV_THRESH"), "auto");
}

TEST_F(UcxConfig, AnUnknownVariableHasNoValue) { EXPECT_EQ(value_of(read_config(true), "NO_SUCH_VARIABLE"), ""); }

}  // namespace
}  // namespace medley::ucx
