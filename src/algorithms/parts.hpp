// The offset and length of each rank's part of a buffer, in elements: equal parts, parts as equal as possible, or those
// of a v-collective.
#pragma once

#include <algorithm>
#include <cstdint>

namespace medley::algorithms {

class Parts {
 public:
  /// n contiguous parts of `part` elements.
  static Parts equal(std::int64_t part) { return {part, 0}; }
  /// `count` elements among n ranks; the first ones get one more.
  static Parts even(std::int64_t count, int n) { return {count / n, count % n}; }
  static Parts listed(const std::int64_t* counts, const std::int64_t* offsets) {
    Parts parts{0, 0};
    parts.counts_ = counts;
    parts.offsets_ = offsets;
    return parts;
  }
  std::int64_t count(int rank) const { return counts_ ? counts_[rank] : part_ + (rank < more_ ? 1 : 0); }
  std::int64_t at(int rank) const {
    return counts_ ? offsets_[rank] : rank * part_ + std::min<std::int64_t>(rank, more_);
  }

 private:
  Parts(std::int64_t part, std::int64_t more) : part_(part), more_(more) {}
  std::int64_t part_, more_;
  const std::int64_t* counts_ = nullptr;
  const std::int64_t* offsets_ = nullptr;
};

}  // namespace medley::algorithms
