// The algorithms of a split such as shm|ucx: share5 to share95, the percentage of the elements that the first library
// carries.
#pragma once

#include <charconv>
#include <cstdint>
#include <medley/types.hpp>
#include <optional>
#include <string_view>
#include <vector>

namespace medley::algorithms {

/// Whether an operation can be divided by elements.
constexpr bool divisible(Op op) { return op == Op::all_reduce || op == Op::broadcast || op == Op::reduce; }

inline constexpr int default_share = 50;

/// All shares, in ascending order.
inline const std::vector<std::string_view>& share_names() {
  static const std::vector<std::string_view> names{
      "share5",  "share10", "share15", "share20", "share25", "share30", "share35", "share40", "share45", "share50",
      "share55", "share60", "share65", "share70", "share75", "share80", "share85", "share90", "share95"};
  return names;
}

/// The percentage of an algorithm's name; none for other algorithms.
inline std::optional<int> share_of(std::string_view algorithm) {
  constexpr std::string_view prefix = "share";
  if (!algorithm.starts_with(prefix)) return std::nullopt;
  int percent = 0;
  const char* const end = algorithm.data() + algorithm.size();
  const auto [read, failed] = std::from_chars(algorithm.data() + prefix.size(), end, percent);
  if (failed != std::errc{} || read != end || percent < 1 || percent > 99) return std::nullopt;
  return percent;
}

/// How many of `count` elements the first library carries: a multiple of 64, so that the border lies between cache
/// lines where the tensor begins at one. A tensor too small for that goes to the library with the larger share.
constexpr std::int64_t first_part(std::int64_t count, int percent) {
  constexpr std::int64_t line = 64;
  const std::int64_t border = (count / 100 * percent + count % 100 * percent / 100) / line * line;
  return border > 0 ? border : percent >= 50 ? count : 0;
}

}  // namespace medley::algorithms
