// Carries one stream of one rank to the launcher's own, line by line, each line with the rank before it.
#pragma once

#include <string>
#include <string_view>

namespace medley {

/// Lines of several ranks share one target and never mix: a line is written when it is whole. "\r" ends a
/// line too, so that progress bars move. A line longer than 16 MiB is cut there.
class LineCarrier {
 public:
  LineCarrier(std::string prefix, int target) : prefix_(std::move(prefix)), target_(target) {}
  /// False when nobody reads the target any more.
  bool feed(std::string_view bytes);
  /// What is left without an end of line gets one.
  bool finish();

 private:
  std::string prefix_;
  int target_;
  std::string line_;
};

}  // namespace medley
