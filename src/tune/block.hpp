// A buffer of a measured operation, on the host or on this rank's CUDA device: how it is filled and looked at. Used by
// Workload and the mixes.
#pragma once

#include <cstddef>
#include <medley/buffer.hpp>
#include <memory>
#include <vector>

#include "device/rank_device.hpp"

namespace medley::tune {

class Block {
 public:
  Block() = default;
  Block(std::size_t count, DType dtype, Memory memory);

  std::size_t count() const { return count_; }
  /// Rewrites every element as a computation would leave it: by plain stores on the host; on the device by a copy within it,
  /// in the legacy default stream, which wait_for_device() then waits for.
  void fill(double value);
  /// Whether elements from `begin` on all have this value: the first that has not, or `begin + count`. Of device memory
  /// it asks what the last look() fetched.
  std::size_t first_other(std::size_t begin, std::size_t count, double value) const;
  /// Fetches device memory for first_other().
  void look();

  Buffer buffer() const { return buffer(count_); }
  Buffer buffer(std::size_t count) const {
    return {device_ ? device_.data() : host_.get(), static_cast<std::int64_t>(count), dtype_, device_ ? Memory::cuda : Memory::host,
            device_ ? core::rank_device().index : 0};
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::size_t bytes() const { return count_ * size_of(dtype_); }
  std::size_t count_ = 0;
  DType dtype_{};
  std::unique_ptr<std::byte[], Free> host_;   ///< the buffer, or what look() fetched
  core::DeviceMemory device_, image_;         ///< the buffer, and what fill() copies into it
  double image_value_ = 0;
};

}  // namespace medley::tune
