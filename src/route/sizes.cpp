#include "route/sizes.hpp"

#include <charconv>

namespace medley::route {

std::optional<std::int64_t> read_size(std::string_view text) noexcept {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc{} || rest + 1 < end) return std::nullopt;
  int shift = 0;
  if (rest != end) {
    switch (*rest) {
      case 'K':
      case 'k': shift = 10; break;
      case 'M':
      case 'm': shift = 20; break;
      case 'G':
      case 'g': shift = 30; break;
      case 'B':
      case 'b': break;
      default: return std::nullopt;
    }
  }
  if (value > static_cast<std::uint64_t>(INT64_MAX) >> shift) return std::nullopt;
  return static_cast<std::int64_t>(value << shift);
}

}  // namespace medley::route
