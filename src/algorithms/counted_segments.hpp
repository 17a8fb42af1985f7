// A slice in segments that are sent one after another, so that combining or forwarding one overlaps the arrival of the
// next. Used by algorithms over messages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace medley::algorithms {

/// Bytes of a segment.
inline constexpr std::size_t segment_bytes = 256 * 1024;

/// The length of the first segment tells how many there are: ranks whose counts differ meet lengths that differ, which is
/// an error. With equal segments the rank with fewer would end well, and its peer would wait for the rest.
class CountedSegments {
 public:
  CountedSegments(std::int64_t count, std::size_t element)
      : count_(count), most_(static_cast<std::int64_t>(segment_bytes / element)) {
    number_ = static_cast<int>((count + most_ - 1) / most_);
    if (number_ > 1 && first() + (number_ - 1) * most_ < count) ++number_;
  }
  int number() const { return number_; }
  /// No segment is longer.
  std::int64_t longest() const { return std::min(most_, count_); }
  /// Where it begins, in elements.
  std::int64_t at(int segment) const { return segment == 0 ? 0 : std::min(first() + (segment - 1) * most_, count_); }
  std::int64_t count(int segment) const { return at(segment + 1) - at(segment); }

 private:
  static constexpr std::int64_t step = 16;  ///< a multiple of 16 elements keeps their alignment
  std::int64_t first() const {
    return number_ == 1 ? count_ : most_ - step * ((number_ - 1) % std::max<std::int64_t>(most_ / (2 * step), 1));
  }

  std::int64_t count_, most_;
  int number_;
};

}  // namespace medley::algorithms
