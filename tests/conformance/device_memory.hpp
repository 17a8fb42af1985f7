// Device memory for the conformance suite, through the core's own interface: the suite links no CUDA.
// MEDLEY_TEST_MEMORY=cuda puts the buffers of cases and letters there.
#pragma once

#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>
#include <vector>

#include "core/device.hpp"

namespace medley::conformance {

inline bool on_device() {
  const char* memory = std::getenv("MEDLEY_TEST_MEMORY");
  return memory && std::string_view(memory) == "cuda";
}

inline core::Device& test_device() {
  static auto* const device = core::open_device(0).release();   // never closed: ranks end in any order
  return *device;
}

/// Blocks are kept for the next image of their size, since freeing waits for all kernels.
class DeviceImage {
 public:
  explicit DeviceImage(std::size_t bytes) : bytes_(bytes) {
    const std::lock_guard lock(pool().mutex);
    auto& free = pool().free[bytes];
    if (free.empty()) {
      data_ = static_cast<std::byte*>(test_device().allocate(bytes));
    } else {
      data_ = free.back();
      free.pop_back();
    }
  }
  DeviceImage(const DeviceImage&) = delete;
  DeviceImage& operator=(const DeviceImage&) = delete;
  ~DeviceImage() {
    std::byte last{};
    test_device().copy_now(&last, data_, 1);   // operations that the legacy stream waits for may still use it
    const std::lock_guard lock(pool().mutex);
    pool().free[bytes_].push_back(data_);
  }
  std::byte* data() const { return data_; }
  void write(const std::byte* from) { test_device().copy_now(data_, from, bytes_); }
  void read(std::byte* to) const { test_device().copy_now(to, data_, bytes_); }

 private:
  struct Pool {
    std::mutex mutex;
    std::map<std::size_t, std::vector<std::byte*>> free;
  };
  static Pool& pool() {
    static auto* const all = new Pool;
    return *all;
  }
  std::size_t bytes_;
  std::byte* data_ = nullptr;
};

}  // namespace medley::conformance
