// The memory of one rank of a program, on the host or on a CUDA device. Used by run_program(), which compares it with
// the oracle's.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <medley/buffer.hpp>
#include <mutex>
#include <utility>
#include <vector>

#include "core/device.hpp"

namespace medley::soak {

class RankMemory {
 public:
  RankMemory(std::vector<std::byte> first, Memory memory) : host_(std::move(first)) {
    if (memory != Memory::cuda) return;
    device_ = device();
    image_ = take_block(host_.size());
    device_->copy_now(image_, host_.data(), host_.size());
  }
  RankMemory(const RankMemory&) = delete;
  RankMemory& operator=(const RankMemory&) = delete;
  ~RankMemory() {
    if (!image_) return;
    const std::lock_guard lock(blocks().mutex);
    blocks().free[std::bit_ceil(host_.size())].push_back(image_);
  }

  Buffer buffer(std::int64_t at, std::int64_t count, DType dtype) {
    return {(image_ ? image_ : host_.data()) + at, count, dtype, image_ ? Memory::cuda : Memory::host, 0};
  }
  /// A place that the program itself reads and writes: fetched from the device, put back by put().
  std::byte* take(std::int64_t at, std::int64_t bytes) {
    std::byte* here = host_.data() + at;
    if (image_ && bytes > 0) device_->copy_now(here, image_ + at, static_cast<std::size_t>(bytes));
    return here;
  }
  void put(std::int64_t at, std::int64_t bytes) {
    if (image_ && bytes > 0) device_->copy_now(image_ + at, host_.data() + at, static_cast<std::size_t>(bytes));
  }
  const std::vector<std::byte>& all() {
    take(0, static_cast<std::int64_t>(host_.size()));
    return host_;
  }

 private:
  /// Kept for the life of the process: programs come and go by the thousand.
  static core::Device* device() {
    static core::Device* const opened = core::open_device(0).release();
    return opened;
  }
  /// Blocks are kept for the next of their size, since freeing waits for every running kernel.
  struct Blocks {
    std::mutex mutex;
    std::map<std::size_t, std::vector<std::byte*>> free;
  };
  static Blocks& blocks() {
    static Blocks all;
    return all;
  }
  static std::byte* take_block(std::size_t bytes) {
    const std::lock_guard lock(blocks().mutex);
    auto& free = blocks().free[std::bit_ceil(bytes)];
    if (free.empty()) return static_cast<std::byte*>(device()->allocate(std::bit_ceil(bytes)));
    std::byte* block = free.back();
    free.pop_back();
    return block;
  }

  std::vector<std::byte> host_;
  core::Device* device_ = nullptr;
  std::byte* image_ = nullptr;
};

}  // namespace medley::soak
