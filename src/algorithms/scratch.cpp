#include "algorithms/scratch.hpp"

#include <bit>
#include <map>
#include <mutex>
#include <vector>

namespace medley::algorithms {
namespace {

// Below it the allocator keeps its pages itself.
constexpr std::size_t least_kept = std::size_t{64} << 10;
constexpr std::size_t most_kept_together = std::size_t{256} << 20;

struct Pool {
  std::mutex mutex;
  std::map<std::size_t, std::vector<std::byte*>> free;
  std::size_t kept = 0;
};

Pool& pool() {
  static auto* const only = new Pool;   // lanes may outlive what is static
  return *only;
}

}  // namespace

Scratch::Scratch(std::size_t bytes) : size_(bytes < least_kept ? bytes : std::bit_ceil(bytes)) {
  if (size_ >= least_kept) {
    const std::lock_guard lock(pool().mutex);
    if (auto& free = pool().free[size_]; !free.empty()) {
      data_ = free.back();
      free.pop_back();
      pool().kept -= size_;
      return;
    }
  }
  data_ = new std::byte[size_];
}

Scratch::~Scratch() {
  if (data_ && size_ >= least_kept) {
    const std::lock_guard lock(pool().mutex);
    if (pool().kept + size_ <= most_kept_together) {
      pool().free[size_].push_back(data_);
      pool().kept += size_;
      return;
    }
  }
  delete[] data_;
}

}  // namespace medley::algorithms
