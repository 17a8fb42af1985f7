#include "replay/trace_folder.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <medley/error.hpp>

namespace medley::replay {
namespace fs = std::filesystem;
namespace {

fs::path new_folder() {
  std::string pattern = fs::temp_directory_path() / "medley-replay-XXXXXX";
  if (!mkdtemp(pattern.data()))
    throw Error(ErrorKind::system, fmt::format("cannot make a folder {}: {}", pattern, std::strerror(errno)));
  return pattern;
}

}  // namespace

TraceFolder::TraceFolder(const std::string& asked)
    : own_(asked.empty()), path_(own_ ? new_folder() : fs::path(asked)) {}

TraceFolder::~TraceFolder() {
  std::error_code ignored;
  if (own_) fs::remove_all(path_, ignored);
}

}  // namespace medley::replay
