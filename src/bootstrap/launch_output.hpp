// Forwards one stream of one rank to the launcher's own, line by line, prefixed with the rank.
#pragma once

#include <string>
#include <string_view>

namespace medley {

/// Lines of several ranks share one target and never mix: only whole lines are written. "\r" also ends a
/// line, so that progress bars move. Lines longer than 16 MiB are split.
class LineCarrier {
 public:
  LineCarrier(std::string prefix, int target) : prefix_(std::move(prefix)), target_(target) {}
  /// False when nobody reads the target any more.
  bool feed(std::string_view bytes);
  /// Ends an unfinished last line.
  bool finish();

 private:
  std::string prefix_;
  int target_;
  std::string line_;
};

}  // namespace medley
