#include "algorithms/scratch.hpp"

#include <bit>

#include <medley/sdk/block_pool.hpp>

namespace medley::algorithms {
namespace {

// The allocator itself keeps pages of smaller blocks.
constexpr std::size_t least_kept = std::size_t{64} << 10;
constexpr std::size_t most_kept_together = std::size_t{256} << 20;

BlockPool& pool() {
  static auto* const only = new BlockPool(most_kept_together);
  return *only;
}

}  // namespace

Scratch::Scratch(std::size_t bytes) : size_(bytes < least_kept ? bytes : std::bit_ceil(bytes)) {
  if (size_ >= least_kept) data_ = pool().take(size_);
  if (!data_) data_ = new std::byte[size_];
}

Scratch::~Scratch() {
  if (data_ && size_ >= least_kept && pool().keep(data_, size_)) return;
  delete[] data_;
}

}  // namespace medley::algorithms
