// The numbers by which this rank's comms are told apart in tags. Each rank numbers its own comms and tells
// the other members, so that 2^16 may be alive on every rank however many the job has.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

#include "backends/ucx/tag.hpp"

namespace medley::ucx {

class CommIds {
 public:
  /// A number that no living comm of this rank has. Error(unavailable) when there is none. From any thread.
  std::uint16_t take();

  /// A comm of this rank is gone, but its members may still send to it: the number can serve again once
  /// `all_left` says that none of them will.
  void retire(std::uint16_t id, std::function<bool()> all_left);

  /// Looks at the oldest retired numbers and frees those that nobody uses any more, after `drop` has thrown
  /// away the messages that came for them. Does nothing while half of all numbers were never used.
  void reclaim(const std::function<void(std::uint16_t)>& drop);

 private:
  struct Retired {
    std::uint16_t id;
    std::function<bool()> all_left;
  };
  std::mutex mutex_;
  int fresh_ = 0;  ///< those below have been used
  std::deque<std::uint16_t> free_;
  std::deque<Retired> retired_;  ///< the oldest first
};

}  // namespace medley::ucx
