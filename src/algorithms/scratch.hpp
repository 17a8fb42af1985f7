// Recycled scratch memory for collectives: faulting in new pages costs more than sending their contents.
#pragma once

#include <cstddef>
#include <utility>

namespace medley::algorithms {

class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(std::size_t bytes);  ///< uninitialised
  Scratch(Scratch&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Scratch& operator=(Scratch&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Scratch();
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace medley::algorithms
