#include "soak/report.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <medley/error.hpp>

namespace medley::soak {

void Slot::report(Reported what, int kind, const std::string& sentence) {
  if (reported.load() != Reported::nothing) return;  // only the first report counts
  std::snprintf(text, sizeof text, "%s", sentence.c_str());
  error_kind = kind;
  reported_ns = std::chrono::steady_clock::now().time_since_epoch().count();
  reported.store(what, std::memory_order_release);  // pairs with the watcher's loads, which are stronger than acquire
}

Report::Report(int ranks) : owner_(true), bytes_(sizeof(Slot) * static_cast<std::size_t>(ranks)) {
  const char* folder = std::getenv("TMPDIR");
  path_ = fmt::format("{}/medley-soak-XXXXXX", folder && *folder ? folder : "/tmp");
  file_ = mkostemp(path_.data(), O_CLOEXEC);
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(bytes_)) != 0) {
    throw Error(ErrorKind::system, fmt::format("cannot make the file {}: {}", path_, std::strerror(errno)));
  }
  map();
}

Report::Report(const std::string& path) : path_(path), file_(open(path.c_str(), O_RDWR | O_CLOEXEC)) {
  struct stat found {};
  if (file_ < 0 || fstat(file_, &found) != 0) {
    throw Error(ErrorKind::system, fmt::format("cannot open the file {}: {}", path_, std::strerror(errno)));
  }
  bytes_ = static_cast<std::size_t>(found.st_size);
  map();
}

void Report::map() {
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (memory == MAP_FAILED)
    throw Error(ErrorKind::system, fmt::format("cannot map the file {}: {}", path_, std::strerror(errno)));
  slots_ = static_cast<Slot*>(memory);
}

void Report::clear() { std::memset(static_cast<void*>(slots_), 0, bytes_); }

Report::~Report() {
  if (slots_) munmap(slots_, bytes_);
  if (file_ >= 0) close(file_);
  if (owner_) unlink(path_.c_str());
}

}  // namespace medley::soak
