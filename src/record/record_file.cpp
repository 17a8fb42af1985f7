#include "record/record_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "record/record_folder.hpp"

namespace medley::core {

void RecordFile::map(int fd, std::size_t length) {
  const int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  base_ = mmap(nullptr, length, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, fd, 0);
  if (base_ == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "cannot map a trace");
  mapped_ = length;
}

RecordFile::RecordFile(std::uint32_t notes_bytes, std::uint64_t slots) : notes_bytes_(notes_bytes), most_(slots) {
  map(-1, bytes(slots));
}

RecordFile::RecordFile(const std::filesystem::path& path, std::uint32_t notes_bytes, std::uint64_t slots,
                       std::uint64_t at_most)
    : path_(path), notes_bytes_(notes_bytes), most_(at_most) {
  fd_ = create_recording(path);
  if (!grow(slots)) {
    const int error = errno;
    close(fd_);
    unlink(path.c_str());  // ours: it was created above
    throw std::system_error(error, std::generic_category(), "no room for " + path.native());
  }
  try {
    map(fd_, bytes(at_most));  // beyond the end of the file the mapping is address space only
  } catch (...) {
    close(fd_);
    unlink(path.c_str());
    throw;
  }
}

RecordFile::~RecordFile() {
  munmap(base_, mapped_);
  if (fd_ >= 0 && !keeps_lock_) close(fd_);
}

bool RecordFile::grow(std::uint64_t slots) noexcept {
  if (fd_ < 0 || slots > most_) return false;
  const int error = posix_fallocate(fd_, 0, static_cast<off_t>(bytes(slots)));
  errno = error;
  return error == 0;
}

void RecordFile::trim(std::uint64_t slots) noexcept {
  if (fd_ >= 0) static_cast<void>(ftruncate(fd_, static_cast<off_t>(bytes(slots))) == 0);
}

}  // namespace medley::core
