// Tells whether this process created a context, or is a child forked from it (such as a data loader).
// A forked child shares the parent's sockets and segments and must not use them.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <medley/error.hpp>
#include <string>

#include <medley/sdk/advise.hpp>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

namespace medley {

/// A page that the kernel zeroes in a child: checking it is one load, where getpid() would be a system call per
/// operation. Kernels before 4.14 and emulators do not zero it; there it falls back to getpid().
class ForkGuard {
 public:
  ForkGuard() {
    void* page = mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) throw Error(ErrorKind::system, std::string("cannot map a page: ") + strerror(errno));
    const bool wiped = advise(page, page_bytes, MADV_WIPEONFORK);
    mark_ = static_cast<Mark*>(page);
    *mark_ = wiped ? Mark::here : Mark::ask;
  }
  ~ForkGuard() { munmap(mark_, page_bytes); }
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;
  bool here() const { return *mark_ == Mark::here || (*mark_ == Mark::ask && getpid() == process_); }

 private:
  enum class Mark : int { wiped, here, ask };
  static constexpr std::size_t page_bytes = 4096;  // the kernel rounds it up to its own page size
  Mark* mark_;
  pid_t process_ = getpid();
};

}  // namespace medley
