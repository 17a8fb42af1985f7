// Memory with known bytes around and in it, to detect every stray write.
#pragma once

#include <cstdint>
#include <cstring>
#include <medley/buffer.hpp>
#include <memory>
#include <string>
#include <vector>

#include "conformance/device_memory.hpp"

namespace medley::conformance {

inline constexpr std::byte canary{0xA5};
inline constexpr std::size_t guard_bytes = 256;

/// Elements between two guard zones; not aligned to cache lines, like users' memory.
class Guarded {
 public:
  Guarded(std::int64_t count, std::size_t element)
      : front_(guard_bytes + element),
        bytes_(2 * guard_bytes + element + static_cast<std::size_t>(count) * element, canary) {}
  std::byte* data() { return bytes_.data() + front_; }
  const std::byte* data() const { return bytes_.data() + front_; }

  /// A view for an operation, of elements at `at` (an address in data()): of this memory, or of its image on
  /// the device.
  Buffer buffer(std::byte* at, std::int64_t count, DType dtype) {
    if (!on_device()) return {at, count, dtype};
    if (!image_) image_ = std::make_shared<DeviceImage>(bytes_.size());
    image_->write(bytes_.data());
    return {image_->data() + (at - bytes_.data()), count, dtype, Memory::cuda, 0};
  }
  /// Copies the result from the device. Its stream already waits for the operation.
  void fetch() {
    if (image_) image_->read(bytes_.data());
  }

  /// The first difference from the expected memory, in words; empty if none.
  std::string difference(const Guarded& expected, std::size_t element) const {
    if (std::memcmp(bytes_.data(), expected.bytes_.data(), bytes_.size()) == 0) return {};
    std::size_t i = 0;
    while (bytes_[i] == expected.bytes_[i]) ++i;
    const auto at = static_cast<std::ptrdiff_t>(i) - static_cast<std::ptrdiff_t>(front_);
    return "byte " + std::to_string(at) + " (element " + std::to_string(at / static_cast<std::ptrdiff_t>(element)) +
           ") is " + std::to_string(static_cast<int>(bytes_[i])) + " and should be " +
           std::to_string(static_cast<int>(expected.bytes_[i]));
  }

 private:
  std::size_t front_;
  std::vector<std::byte> bytes_;
  std::shared_ptr<DeviceImage> image_;
};

}  // namespace medley::conformance
