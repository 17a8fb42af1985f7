// What commands show on a terminal and nowhere else: colours and progress bars. A pipe or a file gets neither.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <string>

namespace medley::cli {

/// Whether the stream is a terminal that understands control sequences (TERM is not dumb).
bool on_terminal(std::FILE* stream);
/// `text` in red and bold on a terminal, unless NO_COLOR is set (no-color.org).
std::string alarming(const std::string& text, std::FILE* stream);

/// One line on stderr that shows how far long work is, and what is left of it. Appears after half a second, so that
/// quick work shows none, and disappears at the end.
class ProgressBar {
 public:
  /// `active` false: shows nothing, as on ranks other than 0.
  explicit ProgressBar(bool active = true);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  /// `now` says what is being done, such as "all_reduce 4K" or "12 of 80 programs".
  void show(double done, double of, const std::string& now);
  /// For functions that report how many things are done: shows "12 of 80 programs". Valid as long as the bar.
  std::function<void(std::size_t, std::size_t)> counting(std::string things);
  /// Takes the line away, so that something else can be printed.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  bool active_, visible_ = false;
  Clock::time_point began_ = Clock::now(), drawn_{};
};

/// The text of a bar of 30 characters; separate from drawing for tests.
std::string bar_text(double done, double of, double seconds, const std::string& now);

}  // namespace medley::cli
