// Random numbers by SplitMix64, with ranges by remainder, so that a seed gives the same sequence
// on every machine and with every standard library. Used by soak for its programs and their initial
// memory contents, and by measurements to shuffle the order of candidates.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace medley::core {

/// The output function of SplitMix64 (Steele, Lea, Flood, 2014).
inline std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(mix(seed + 0x9e3779b97f4a7c15u)) {}
  std::uint64_t bits() { return mix(state_ += 0x9e3779b97f4a7c15u); }
  /// From 0 to `limit` - 1; the bias of a remainder of 64 bits does not matter here.
  std::int64_t below(std::int64_t limit) {
    return limit <= 1 ? 0 : static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(limit));
  }
  int between(int first, int last) { return first + static_cast<int>(below(last - first + 1)); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(below(static_cast<std::int64_t>(list.size())))];
  }
  template <class T>
  T one_of(std::initializer_list<T> list) {
    return list.begin()[below(static_cast<std::int64_t>(list.size()))];
  }
  template <class T>
  void shuffle(std::vector<T>& list) {
    for (std::size_t i = list.size(); i > 1; --i)
      std::swap(list[i - 1], list[static_cast<std::size_t>(below(static_cast<std::int64_t>(i)))]);
  }

 private:
  std::uint64_t state_;
};

}  // namespace medley::core
