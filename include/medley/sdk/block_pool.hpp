// Memory that is kept by size for the next who wants as much, where taking it from the system and giving it back costs too much.
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

/// Whether blocks that nobody owns are filled with a pattern, and checked when they are taken again: MEDLEY_POISON=1, as
/// `medley soak` sets. A library that writes into memory it was to have let go of is then found.
inline bool poisons_free_memory() {
  static const bool wanted = [] {
    const char* text = std::getenv("MEDLEY_POISON");
    return text && *text == '1';
  }();
  return wanted;
}

/// From any thread. Those of a process are never destroyed: who gives a block back may outlive what is static.
class BlockPool {
 public:
  /// `on_host`: whether the processor can write the blocks.
  explicit BlockPool(std::size_t most_together = SIZE_MAX, bool on_host = true)
      : most_(most_together), poison_(on_host && poisons_free_memory()) {}
  /// One of this size, or null where none is kept.
  std::byte* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    auto& free = free_[bytes];
    if (free.empty()) return nullptr;
    std::byte* block = free.back();
    free.pop_back();
    together_ -= bytes;
    if (poison_) require_untouched(block, bytes);
    return block;
  }
  /// False where it would be too much: the block stays the caller's.
  bool keep(std::byte* block, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (bytes > most_ - together_) return false;
    if (poison_) std::memset(block, pattern, bytes);
    free_[bytes].push_back(block);
    together_ += bytes;
    return true;
  }

 private:
  static constexpr unsigned char pattern = 0xa5;
  static void require_untouched(const std::byte* block, std::size_t bytes) {
    const auto* bad = std::find_if(block, block + bytes, [](std::byte b) { return b != std::byte{pattern}; });
    if (bad == block + bytes) return;
    std::fprintf(stderr, "medley: byte %zu of a free block of %zu was written: a library used memory that it had let go of\n",
                 static_cast<std::size_t>(bad - block), bytes);
    std::abort();
  }

  const std::size_t most_;
  const bool poison_;
  std::mutex mutex_;
  std::map<std::size_t, std::vector<std::byte*>> free_;
  std::size_t together_ = 0;
};

}  // namespace medley
