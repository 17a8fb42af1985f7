// Memory that is kept by size for the next who wants as much, where taking it from the system and giving it back costs too much.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace medley::core {

/// From any thread. Those of a process are never destroyed: who gives a block back may outlive what is static.
class KeptBlocks {
 public:
  explicit KeptBlocks(std::size_t most_together = SIZE_MAX) : most_(most_together) {}
  /// One of this size, or null where none is kept.
  std::byte* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    auto& free = free_[bytes];
    if (free.empty()) return nullptr;
    std::byte* block = free.back();
    free.pop_back();
    together_ -= bytes;
    return block;
  }
  /// False where it would be too much: the block stays the caller's.
  bool keep(std::byte* block, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (bytes > most_ - together_) return false;
    free_[bytes].push_back(block);
    together_ += bytes;
    return true;
  }

 private:
  const std::size_t most_;
  std::mutex mutex_;
  std::map<std::size_t, std::vector<std::byte*>> free_;
  std::size_t together_ = 0;
};

}  // namespace medley::core
