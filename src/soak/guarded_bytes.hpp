// Memory between two pages that nobody may touch, with a pattern in what is left of its own pages: whoever writes a byte
// outside of it is found. What a rank of a random program works on, and what a program gets after an operation failed.
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
    std::fill_n(begin_, capacity_ - bytes_, pattern);   // the end lies at the page behind it, where most mistakes reach
    if (bytes_ > 0) std::memcpy(data(), content.data(), bytes_);
  }
  ~GuardedBytes() { munmap(begin_ - page(), capacity_ + 2 * page()); }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;

  std::byte* data() { return begin_ + capacity_ - bytes_; }
  std::size_t size() const { return bytes_; }
  std::span<const std::byte> all() { return {data(), bytes_}; }
  /// Whether the bytes in front of it are as they were.
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
