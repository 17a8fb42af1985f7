// A test whose ranks record all operations, in its own folder.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace medley::test {

class Traced : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / fmt::format("medley-trace-test-{}", getpid());
    std::filesystem::remove_all(folder_);
    setenv("MEDLEY_TRACE", folder_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("MEDLEY_TRACE");
    std::filesystem::remove_all(folder_);
  }
  std::filesystem::path folder_;
};

}  // namespace medley::test
