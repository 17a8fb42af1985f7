// Figures formatted for sentences.
#pragma once

#include <fmt/format.h>

#include <string>

#include "report/fields.hpp"

namespace medley::report {

inline std::string bytes_text(double bytes) {
  static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  int unit = 0;
  for (; bytes >= 1024 && unit < 5; ++unit) bytes /= 1024;
  return fmt::format("{:.{}f} {}", bytes,
                     bytes == static_cast<double>(static_cast<long long>(bytes)) || bytes >= 100 ? 0 : 1, units[unit]);
}

inline std::string time_text(double us) {
  if (us >= 1e6) return fmt::format("{:.2f} s", us / 1e6);
  if (us >= 1e3) return fmt::format("{:.1f} ms", us / 1e3);
  return fmt::format("{:.1f} µs", us);
}

inline std::string percent_text(double share) { return fmt::format("{:.{}f} %", 100 * share, share < 0.1 ? 1 : 0); }

/// For a bench file: "4 ranks on 2 hosts".
inline std::string where_text(const Json& file) {
  std::string text = fmt::format("{:.0f} ranks", file["ranks"].get<double>());
  if (file["hosts"].is_number())
    text += fmt::format(" on {:.0f} host{}", file["hosts"].get<double>(), file["hosts"] == 1 ? "" : "s");
  return text;
}

}  // namespace medley::report
