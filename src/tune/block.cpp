#include "tune/block.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <medley/error.hpp>

#include "tune/element_values.hpp"

namespace medley::tune {

void Block::Free::operator()(std::byte* memory) const { std::free(memory); }

Block::Block(std::size_t count, DType dtype, Memory memory) : count_(count), dtype_(dtype) {
  host_.reset(static_cast<std::byte*>(std::aligned_alloc(4096, (bytes() + 4096) / 4096 * 4096)));
  if (!host_) throw Error(ErrorKind::system, fmt::format("cannot allocate {} bytes for a benchmark's buffer", bytes()));
  if (memory == Memory::cuda) device_ = core::DeviceMemory(bytes());
}

void Block::fill(double value) {
  if (!device_) return tune::fill(host_.get(), count_, dtype_, value);
  if (!image_ || image_value_ != value) {
    if (!image_) image_ = core::DeviceMemory(bytes());
    tune::fill(host_.get(), count_, dtype_, value);
    image_.write(host_.get(), 0, bytes());
    image_value_ = value;
  }
  if (count_ > 0) core::rank_device().device.copy(device_.data(), image_.data(), bytes(), nullptr);
}

void Block::look() {
  if (device_) device_.read(host_.get(), 0, bytes());
}

std::size_t Block::first_other(std::size_t begin, std::size_t count, double value, bool exact) const {
  return begin + (exact ? tune::first_other : first_far)(host_.get() + begin * size_of(dtype_), count, dtype_, value);
}

}  // namespace medley::tune
