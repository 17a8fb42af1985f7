// Where each rank's part of a buffer lies, in elements: equal parts, parts as equal as can be, or those of a
// v-form.
#pragma once

#include <algorithm>
#include <cstdint>

namespace medley::algorithms {

class Slices {
 public:
  /// n parts of `part` elements, side by side.
  static Slices equal(std::int64_t part) { return {part, 0}; }
  /// `count` elements among n ranks; the first ones get one more.
  static Slices even(std::int64_t count, int n) { return {count / n, count % n}; }
  static Slices listed(const std::int64_t* counts, const std::int64_t* offsets) {
    Slices slices{0, 0};
    slices.counts_ = counts;
    slices.offsets_ = offsets;
    return slices;
  }
  std::int64_t count(int rank) const { return counts_ ? counts_[rank] : part_ + (rank < more_ ? 1 : 0); }
  std::int64_t at(int rank) const {
    return counts_ ? offsets_[rank] : rank * part_ + std::min<std::int64_t>(rank, more_);
  }

 private:
  Slices(std::int64_t part, std::int64_t more) : part_(part), more_(more) {}
  std::int64_t part_, more_;
  const std::int64_t* counts_ = nullptr;
  const std::int64_t* offsets_ = nullptr;
};

}  // namespace medley::algorithms
