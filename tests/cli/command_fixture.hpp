// The command as a user runs it: with a folder for its files and for the cached table, which is not the user's. Used by
// tests of its commands.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "cli/process.hpp"

namespace medley::test {

class CommandTest : public ::testing::Test {
 protected:
  CommandTest() {
    std::filesystem::create_directories(folder);
    setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  }
  ~CommandTest() override { std::filesystem::remove_all(folder); }

  std::string file(const std::string& name) const { return folder / name; }

  struct Ended {
    int status;
    std::string out, err;
  };
  static Ended run(std::vector<std::string> words, const std::map<std::string, std::string>& environment = {}) {
    words.insert(words.begin(), MEDLEY_COMMAND);
    Process process(words, environment);
    process.finish();
    return {process.status, process.out, process.err};
  }

  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("medley_command_{}", getpid());
};

}  // namespace medley::test
