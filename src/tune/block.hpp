// A buffer of a measured operation, on the host or on this rank's CUDA device: how it is filled and checked. Used by
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
  /// Rewrites every element as a computation would leave it: with plain stores on the host; on the device with a
  /// device-to-device copy in the legacy default stream, which wait_for_device() then waits for.
  void fill(double value);
  /// The first element from `begin` on with another value, or `begin + count`. For device memory it examines the copy
  /// from the last look().
  std::size_t first_other(std::size_t begin, std::size_t count, double value, bool exact = true) const;
  /// Copies device memory to the host for first_other().
  void look();

  Buffer buffer() const { return buffer(count_); }
  Buffer buffer(std::size_t count) const {
    return {device_ ? device_.data() : host_.get(), static_cast<std::int64_t>(count), dtype_,
            device_ ? Memory::cuda : Memory::host, device_ ? core::rank_device().index : 0};
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::size_t bytes() const { return count_ * size_of(dtype_); }
  std::size_t count_ = 0;
  DType dtype_{};
  std::unique_ptr<std::byte[], Free> host_;  ///< the buffer, or the copy from look()
  core::DeviceMemory device_, image_;        ///< the buffer, and the source of fill()
  double image_value_ = 0;
};

}  // namespace medley::tune
