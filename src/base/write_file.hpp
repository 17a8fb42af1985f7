// Writes a file that a user named, or throws an error that it cannot be written.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <medley/error.hpp>
#include <string>

namespace medley::core {

[[noreturn]] inline void refuse_to_write(const std::string& path) {
  throw Error(ErrorKind::invalid, fmt::format("cannot write {}: check that its folder exists", path));
}

/// `write` writes the contents to the stream passed to it.
template <typename Write>
void write_file(const std::string& path, const Write& write) {
  std::ofstream file(path, std::ios::binary);
  write(file);
  if (!file.flush()) refuse_to_write(path);
}

/// Throws what write_file() would, before the work whose result it writes. Leaves a file that exists as it is.
inline void check_can_write(const std::string& path) {
  std::error_code ignored;
  const bool exists = std::filesystem::exists(path, ignored);
  // Whoever reads a pipe would take the end of this try for the end of the data.
  if (exists && !std::filesystem::is_regular_file(path, ignored)) return;
  if (!std::ofstream(path, std::ios::binary | std::ios::app)) refuse_to_write(path);
  if (!exists) std::filesystem::remove(path, ignored);
}

}  // namespace medley::core
