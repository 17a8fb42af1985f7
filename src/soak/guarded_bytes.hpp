// Memory between two inaccessible guard pages, with a pattern in the unused rest of its own pages, to detect
// every out-of-bounds write. The memory of a rank of a random program, and the memory a program allocates
// after an operation failed.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <span>

namespace medley::soak {

class GuardedBytes {
 public:
  explicit GuardedBytes(std::span<const std::byte> content) : bytes_(content.size()) {
    capacity_ = (bytes_ + page() - 1) / page() * page();
    void* all = mmap(nullptr, capacity_ + 2 * page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) throw std::bad_alloc();
    begin_ = static_cast<std::byte*>(all) + page();
    if (capacity_ > 0 && mprotect(begin_, capacity_, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    // The buffer ends at the guard page behind it, because most mistakes overrun the end
    std::fill_n(begin_, capacity_ - bytes_, pattern);
    if (bytes_ > 0) std::memcpy(data(), content.data(), bytes_);
  }
  ~GuardedBytes() { munmap(begin_ - page(), capacity_ + 2 * page()); }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;

  std::byte* data() { return begin_ + capacity_ - bytes_; }
  std::size_t size() const { return bytes_; }
  std::span<const std::byte> all() { return {data(), bytes_}; }
  /// Whether the pattern in front of the buffer is unchanged.
  bool intact() const {
    return std::all_of(begin_, begin_ + capacity_ - bytes_, [](std::byte b) { return b == pattern; });
  }

 private:
  static constexpr std::byte pattern{0xa5};
  static std::size_t page() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }
  std::size_t bytes_, capacity_ = 0;
  std::byte* begin_ = nullptr;
};

}  // namespace medley::soak
