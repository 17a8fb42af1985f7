// Tells whether this process is the one that made a context, or a child forked from it (a data loader, say).
// A forked child shares the parent's sockets and segments and must not use them.
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <medley/error.hpp>
#include <string>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

namespace medley::core {

/// A page that the kernel wipes in a child: one load tells, where getpid() would be a system call per operation.
class ForkGuard {
 public:
  ForkGuard() {
    void* page = mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) throw Error(ErrorKind::system, std::string("cannot map a page: ") + strerror(errno));
    madvise(page, page_bytes, MADV_WIPEONFORK);
    here_ = static_cast<int*>(page);
    *here_ = 1;
  }
  ~ForkGuard() { munmap(here_, page_bytes); }
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;
  bool here() const { return *here_ == 1; }

 private:
  static constexpr std::size_t page_bytes = 4096;
  int* here_;
};

}  // namespace medley::core
