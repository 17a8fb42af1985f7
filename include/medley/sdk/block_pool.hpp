// A pool of memory blocks by size, for memory that is too expensive to allocate and free each time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

namespace medley {

/// Whether free blocks are filled with a pattern that is checked when they are taken again: MEDLEY_POISON=1, which
/// `medley soak` sets. Detects a library that writes into memory after it released it.
inline bool poisons_free_memory() {
  static const bool wanted = [] {
    const char* text = std::getenv("MEDLEY_POISON");
    return text && *text == '1';
  }();
  return wanted;
}

/// Thread-safe. Process-wide pools are never destroyed: a block may be returned after static destruction.
class BlockPool {
 public:
  /// `on_host`: whether the CPU can write the blocks.
  explicit BlockPool(std::size_t max_bytes = SIZE_MAX, bool on_host = true)
      : max_bytes_(max_bytes), poison_(on_host && poisons_free_memory()) {}
  /// A block of this size, or null if the pool has none.
  std::byte* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    auto& free = free_[bytes];
    if (free.empty()) return nullptr;
    std::byte* block = free.back();
    free.pop_back();
    held_bytes_ -= bytes;
    if (poison_) require_untouched(block, bytes);
    return block;
  }
  /// False if the pool would grow too large: the caller keeps the block.
  bool keep(std::byte* block, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (bytes > max_bytes_ - held_bytes_) return false;
    if (poison_) std::memset(block, pattern, bytes);
    free_[bytes].push_back(block);
    held_bytes_ += bytes;
    return true;
  }

 private:
  static constexpr unsigned char pattern = 0xa5;
  static void require_untouched(const std::byte* block, std::size_t bytes) {
    const auto* bad = std::find_if(block, block + bytes, [](std::byte b) { return b != std::byte{pattern}; });
    if (bad == block + bytes) return;
    std::fprintf(stderr, "medley: byte %zu of a free block of %zu was written: a library used memory it had released\n",
                 static_cast<std::size_t>(bad - block), bytes);
    std::abort();
  }

  const std::size_t max_bytes_;
  const bool poison_;
  std::mutex mutex_;
  std::map<std::size_t, std::vector<std::byte*>> free_;
  std::size_t held_bytes_ = 0;
};

}  // namespace medley
