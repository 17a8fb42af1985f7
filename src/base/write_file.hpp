// Writes a file that a user named, or throws an error that it cannot be written.
#pragma once

#include <fmt/format.h>

#include <fstream>
#include <medley/error.hpp>
#include <string>

namespace medley::core {

/// `write` writes the contents to the stream passed to it.
template <typename Write>
void write_file(const std::string& path, const Write& write) {
  std::ofstream file(path, std::ios::binary);
  write(file);
  if (!file.flush())
    throw Error(ErrorKind::invalid, fmt::format("cannot write {}: check that its folder exists", path));
}

}  // namespace medley::core
