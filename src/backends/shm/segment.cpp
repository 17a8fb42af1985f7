#include "backends/shm/segment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <medley/error.hpp>
#include <mutex>
#include <utility>

#include <medley/sdk/advise.hpp>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14
#endif

namespace medley::shm {
namespace {

constexpr const char* folder = "/dev/shm";
constexpr const char* refusal = "refused: ";  // published in the store in place of an address

std::string mebibytes(std::size_t bytes) { return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20)); }

[[noreturn]] void too_small(std::size_t needed, std::size_t available, const std::string& purpose) {
  throw Error(ErrorKind::unavailable,
              fmt::format("{} is too small for {}: {} are needed and {} are free; enlarge it (docker run --shm-size, "
                          "mount -o remount,size=…) or leave shm out of the backends",
                          folder, purpose, mebibytes(needed), mebibytes(available)));
}

/// Whether the kernel can populate a part of a mapping (Linux 5.14).
bool can_populate() {
  static const bool can = [] {
    void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const bool done = page != MAP_FAILED && advise(page, 4096, MADV_POPULATE_WRITE);
    if (page != MAP_FAILED) munmap(page, 4096);
    return done;
  }();
  return can;
}

std::shared_ptr<std::byte> map_anew(int file, std::size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (data == MAP_FAILED) {
    const int error = errno;
    ::close(file);
    throw Error(ErrorKind::system,
                fmt::format("cannot map {} of shared memory: {}", mebibytes(bytes), strerror(error)));
  }
  // A forked child (a data loader) must not hold pages of the parent's job.
  madvise(data, bytes, MADV_DONTFORK);
  return {static_cast<std::byte*>(data), [bytes, process = getpid()](std::byte* mapped) {
            if (getpid() == process) munmap(mapped, bytes);
          }};
}

#ifdef __SANITIZE_THREAD__
// ThreadSanitizer identifies memory by its address. Ranks that are threads must map a segment at one address for it to
// follow their flags, so in such builds a process maps a segment once.
std::shared_ptr<std::byte> map(int file, std::size_t bytes) {
  static std::mutex mutex;
  static std::map<std::pair<dev_t, ino_t>, std::weak_ptr<std::byte>> mappings;
  struct stat status {};
  fstat(file, &status);
  const std::lock_guard lock(mutex);
  auto& known = mappings[{status.st_dev, status.st_ino}];
  auto mapping = known.lock();
  if (!mapping) known = mapping = map_anew(file, bytes);
  return mapping;
}
#else
std::shared_ptr<std::byte> map(int file, std::size_t bytes) { return map_anew(file, bytes); }
#endif

}  // namespace

Segment Segment::make(std::size_t bytes, const std::string& purpose) { return make(bytes, purpose, !can_populate()); }

Segment Segment::make(std::size_t bytes, const std::string& purpose, bool reserve) {
  const int file = ::open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0) {
    throw Error(ErrorKind::unavailable, fmt::format("cannot make shared memory in {}: {}", folder, strerror(errno)));
  }
  struct statvfs room {};
  const bool known = fstatvfs(file, &room) == 0 && room.f_blocks > 0;
  const std::size_t available = known ? static_cast<std::size_t>(room.f_bavail) * room.f_frsize : 0;
  if (known && available < bytes) {
    ::close(file);
    too_small(bytes, available, purpose);
  }
  if (ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    const int error = errno;
    ::close(file);
    throw Error(ErrorKind::system,
                fmt::format("cannot size {} of shared memory: {}", mebibytes(bytes), strerror(error)));
  }
  if (reserve && fallocate(file, 0, 0, static_cast<off_t>(bytes)) != 0) {
    ::close(file);
    too_small(bytes, available, purpose);
  }
  return {file, map(file, bytes)};
}

Segment Segment::publish(std::size_t bytes, std::size_t populated, const std::string& purpose, Store& store,
                         const std::string& key) {
  try {
    Segment segment = make(bytes, purpose);
    segment.populate(0, populated);
    store.set(key, segment.address());
    return segment;
  } catch (const Error& error) {
    store.set(key, refusal + std::string(error.what()));
    throw;
  }
}

Segment Segment::open_published(const std::string& published, std::size_t bytes) {
  if (published.starts_with(refusal)) throw Error(ErrorKind::unavailable, published.substr(std::strlen(refusal)));
  return open(published, bytes);
}

Segment Segment::open(const std::string& address, std::size_t bytes) {
  const int file = ::open(address.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) {
    throw Error(ErrorKind::system, fmt::format("cannot open the shared memory of a neighbour at {}: {}; it may have "
                                               "died, or this process may not look into it",
                                               address, strerror(errno)));
  }
  return {file, map(file, bytes)};
}

Segment::Segment(int file, std::shared_ptr<std::byte> data) : process_(getpid()), file_(file), data_(std::move(data)) {}

Segment::Segment(Segment&& other) noexcept
    : process_(other.process_), file_(std::exchange(other.file_, -1)), data_(std::move(other.data_)) {}

Segment::~Segment() { seal(); }

bool Segment::here() const { return getpid() == process_; }

std::string Segment::address() const { return fmt::format("/proc/{}/fd/{}", getpid(), file_); }

void Segment::seal() noexcept {
  if (file_ >= 0) ::close(std::exchange(file_, -1));
}

void Segment::populate(std::size_t offset, std::size_t bytes) const {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));  // 4 KiB on x86; 4, 16 or 64 KiB on AArch64
  const std::size_t begin = offset / page * page;
  if (madvise(data() + begin, offset + bytes - begin, MADV_POPULATE_WRITE) == 0) return;
  if (!can_populate()) return;  // all of it was reserved when it was made
  throw Error(ErrorKind::unavailable,
              fmt::format("{} is full: {} more are needed for a comm's buffers ({}); enlarge it or use fewer comms",
                          folder, mebibytes(bytes), strerror(errno)));
}

}  // namespace medley::shm
