// Writes a file that a user named, or throws an error that it cannot be written.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <medley/error.hpp>
#include <string>

namespace medley::core {

/// `error`: an errno; 0: the stream does not say.
[[noreturn]] inline void refuse_to_write(const std::filesystem::path& path, int error) {
  const std::filesystem::path folder = path.parent_path();
  std::error_code ignored;
  const bool no_folder =
      !folder.empty() && !std::filesystem::exists(folder, ignored);  // /proc exists, and takes no file
  throw Error(ErrorKind::invalid, fmt::format("cannot write {}: {}", path.native(),
                                              error == ENOENT && no_folder ? "its folder does not exist"
                                              : error                      ? std::strerror(error)
                                                                           : "the disk may be full"));
}

/// `write` writes the contents to the stream passed to it.
template <typename Write>
void write_file(const std::string& path, const Write& write) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  if (!file) refuse_to_write(path, errno);
  errno = 0;
  write(file);
  if (!file.flush()) refuse_to_write(path, errno);
}

/// Creates a file where there is none, and removes it again. 0 or an errno; not every folder that grants access takes files.
inline int try_to_create(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return errno == EEXIST ? 0 : errno;
  ::close(file);
  ::unlink(path.c_str());
  return 0;
}

/// Throws what write_file() would, before the work whose result it writes. Leaves alone what is there: a file, a link to
/// none, or a pipe, whose reader would take the end of a try for the end of the data.
inline void check_can_write(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status)) refuse_to_write(path, EISDIR);
  if (fs::exists(status)) {
    if (::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0) refuse_to_write(path, errno);
    return;
  }
  const bool link = fs::is_symlink(path, ignored);
  const fs::path target = link ? fs::path(path).parent_path() / fs::read_symlink(path, ignored) : fs::path(path);
  if (const int error = try_to_create(target)) refuse_to_write(path, error);
}

}  // namespace medley::core
