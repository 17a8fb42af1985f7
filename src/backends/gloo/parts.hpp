// The parts of a v-collective in bytes, and memory in which they are contiguous, as Gloo needs them. Used by the
// collectives; memory that is already in that order is used directly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace medley::gloo_backend {

class Parts {
 public:
  Parts(const std::int64_t* counts, const std::int64_t* offsets, int ranks, std::size_t element) {
    const auto unit = static_cast<std::int64_t>(element);
    for (int r = 0; r < ranks; ++r) {
      if (counts[r] > 0 && offsets[r] * unit != total_) in_order_ = false;
      sizes_.push_back(counts[r] * unit);
      offsets_.push_back(offsets[r] * unit);
      total_ += sizes_.back();
    }
  }
  const std::vector<std::int64_t>& sizes() const { return sizes_; }
  const std::vector<std::int64_t>& offsets() const { return offsets_; }
  std::int64_t total() const { return total_; }
  bool in_order() const { return in_order_; }

 private:
  std::vector<std::int64_t> sizes_, offsets_;
  std::int64_t total_ = 0;
  bool in_order_ = true;
};

class Packed {
 public:
  Packed(const Parts& parts, char* memory, bool copy = false) : parts_(parts), memory_(memory) {
    if (copy || !parts.in_order()) spare_.resize(static_cast<std::size_t>(parts.total()));
    separate_ = copy || !parts.in_order();
  }
  char* data() { return separate_ ? spare_.data() : memory_; }
  /// The offset of a rank's part in data().
  char* part(std::size_t rank) {
    char* at = data();
    for (std::size_t r = 0; r < rank; ++r) at += parts_.sizes()[r];
    return at;
  }
  void pack() {
    if (separate_) each([](char* own, char* users, std::size_t bytes) { std::memcpy(own, users, bytes); });
  }
  void unpack() {
    if (separate_) each([](char* own, char* users, std::size_t bytes) { std::memcpy(users, own, bytes); });
  }

 private:
  template <class Copy>
  void each(Copy copy) {
    char* at = spare_.data();
    for (std::size_t r = 0; r < parts_.sizes().size(); ++r) {
      const auto bytes = static_cast<std::size_t>(parts_.sizes()[r]);
      if (bytes > 0) copy(at, memory_ + parts_.offsets()[r], bytes);
      at += bytes;
    }
  }
  const Parts& parts_;
  char* memory_;
  bool separate_ = false;
  std::vector<char> spare_;
};

}  // namespace medley::gloo_backend
