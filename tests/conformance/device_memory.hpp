// Device memory for the conformance suite, through the core's own interface: the suite links no CUDA.
// MEDLEY_TEST_MEMORY=cuda allocates the buffers of cases and letters there.
#pragma once

#include <cstdlib>
#include <string_view>

#include <medley/sdk/block_pool.hpp>
#include <medley/sdk/device.hpp>

namespace medley::conformance {

inline bool on_device() {
  const char* memory = std::getenv("MEDLEY_TEST_MEMORY");
  return memory && std::string_view(memory) == "cuda";
}

inline Device& test_device() {
  static auto* const device = open_device(0).release();  // never closed: ranks end in any order
  return *device;
}

/// Blocks are reused for the next image of their size, because freeing waits for all kernels.
class DeviceImage {
 public:
  explicit DeviceImage(std::size_t bytes) : bytes_(bytes), data_(kept().take(bytes)) {
    if (!data_) data_ = static_cast<std::byte*>(test_device().allocate(bytes));
  }
  DeviceImage(const DeviceImage&) = delete;
  DeviceImage& operator=(const DeviceImage&) = delete;
  ~DeviceImage() {
    std::byte last{};
    test_device().copy_now(&last, data_, 1);  // operations that the legacy stream waits for may still use it
    kept().keep(data_, bytes_);
  }
  std::byte* data() const { return data_; }
  void write(const std::byte* from) { test_device().copy_now(data_, from, bytes_); }
  void read(std::byte* to) const { test_device().copy_now(to, data_, bytes_); }

 private:
  static BlockPool& kept() {
    static auto* const all = new BlockPool(SIZE_MAX, false);
    return *all;
  }
  std::size_t bytes_;
  std::byte* data_;
};

}  // namespace medley::conformance
