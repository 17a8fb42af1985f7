// The numbers that identify this rank's comms in tags. Each rank numbers its own comms and sends the number to the
// other members, so that every rank may have 2^16 live comms, however many the job has.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

#include "backends/ucx/tag.hpp"

namespace medley::ucx {

class CommIds {
 public:
  /// A number that no live comm of this rank has. Error(unavailable) when there is none. From any thread.
  std::uint16_t take();

  /// A comm of this rank is destroyed, but its members may still send to it: the number can be reused once `all_left`
  /// returns that none of them will.
  void retire(std::uint16_t id, std::function<bool()> all_left);

  /// Checks the oldest retired numbers and frees those that no member uses, after `drop` has discarded the messages for
  /// them. Does nothing while half of all numbers were never used.
  void reclaim(const std::function<void(std::uint16_t)>& drop);

 private:
  struct Retired {
    std::uint16_t id;
    std::function<bool()> all_left;
  };
  std::mutex mutex_;
  int fresh_ = 0;  ///< numbers below it have been used
  std::deque<std::uint16_t> free_;
  std::deque<Retired> retired_;  ///< the oldest first
};

}  // namespace medley::ucx
