// The CUDA device of a rank whose program does not use CUDA, and memory there. Used by `medley bench`, `tune` and
// `soak`.
#pragma once

#include <cstddef>
#include <medley/export.hpp>
#include <utility>

#include <medley/sdk/device.hpp>

namespace medley::core {

struct RankDevice {
  int index;  ///< for ContextOptions::device
  Device& device;
};

/// Ranks of a host take its devices round-robin. A rank that shares a device with an earlier one gets its own
/// NCCL_HOSTID: NCCL allows shared devices only between ranks of different hosts, and then uses sockets. Call it before
/// creating the context. The device stays open as long as the process. Throws Error(unavailable) with the reason.
MEDLEY_API const RankDevice& rank_device();

/// Memory of that device, from a pool of the process, since freeing waits for every running kernel. Nothing may use it
/// any more when it is destroyed.
class MEDLEY_API DeviceMemory {
 public:
  DeviceMemory() = default;
  explicit DeviceMemory(std::size_t bytes);
  DeviceMemory(DeviceMemory&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~DeviceMemory();

  std::byte* data() const { return data_; }
  explicit operator bool() const { return data_ != nullptr; }
  void write(const void* from, std::size_t at, std::size_t bytes) const;
  void read(void* to, std::size_t at, std::size_t bytes) const;

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;  ///< of the block
};

/// Waits until all copies and kernels in the legacy default stream have completed.
MEDLEY_API void wait_for_device();

}  // namespace medley::core
