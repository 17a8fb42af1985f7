// The memory of one rank of a program, on the host or on a CUDA device. run_program() uses it and compares it
// with the oracle's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <medley/buffer.hpp>
#include <span>
#include <vector>

#include "device/rank_device.hpp"
#include "soak/guarded_bytes.hpp"

namespace medley::soak {

class RankMemory {
 public:
  RankMemory(const std::vector<std::byte>& first, Memory memory) : host_(first) {
    if (memory != Memory::cuda) return;
    image_ = core::DeviceMemory(host_.size());
    device_ = core::rank_device().index;
    image_.write(host_.data(), 0, host_.size());
  }
  RankMemory(const RankMemory&) = delete;
  RankMemory& operator=(const RankMemory&) = delete;

  Buffer buffer(std::int64_t at, std::int64_t count, DType dtype) {
    return {(image_ ? image_.data() : host_.data()) + at, count, dtype, image_ ? Memory::cuda : Memory::host, device_};
  }
  /// Memory that the program itself reads and writes: copied from the device here, copied back by put().
  std::byte* take(std::int64_t at, std::int64_t bytes) {
    std::byte* here = host_.data() + at;
    if (image_) image_.read(here, static_cast<std::size_t>(at), static_cast<std::size_t>(bytes));
    return here;
  }
  void put(std::int64_t at, std::int64_t bytes) {
    if (image_) image_.write(host_.data() + at, static_cast<std::size_t>(at), static_cast<std::size_t>(bytes));
  }
  std::span<const std::byte> all() {
    take(0, static_cast<std::int64_t>(host_.size()));
    return host_.all();
  }
  /// Whether no byte outside of it was written.
  bool intact() const { return host_.intact(); }

 private:
  GuardedBytes host_;
  core::DeviceMemory image_;
  int device_ = 0;
};

}  // namespace medley::soak
