// The sends and receives of one filled-in collective: started at once, awaited one by one or
// together. Every algorithm communicates through this class.
#pragma once

#include <cstddef>
#include <cstdint>
#include <medley/backend.hpp>
#include <utility>
#include <vector>

#include <medley/sdk/task.hpp>

namespace medley::algorithms {

class Messages {
 public:
  /// A pending message; 0 means complete.
  using Ticket = std::uint64_t;

  Messages(Lane& lane, const Call& whole, int tag) : lane_(lane), whole_(whole), tag_(tag) {}
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  /// Messages of one pair arrive in the order they were started. Empty ones are not sent: both ends know the
  /// sizes.
  Ticket send(const void* data, std::size_t bytes, int to);
  Ticket recv(void* data, std::size_t bytes, int from);

  auto done(Ticket ticket) {
    return until([this, ticket] { return finished(ticket); });
  }
  auto all() {
    return until([this] { return poll() == 0; });
  }

  /// Makes progress on all; returns how many are left.
  std::size_t poll();

  /// Whether anything progressed since the last call: if so, the waiting thread must not sleep.
  bool take_moved() { return std::exchange(moved_, false); }
  std::vector<int> awaited() const;
  /// Hands over the incomplete transfers, to be released after their lane was aborted.
  std::vector<Transfer*> abandon() noexcept;

 private:
  struct Active {
    Ticket ticket;
    Transfer* transfer;
    int peer;
    std::int64_t expected;  ///< bytes that a receive must get, -1 for a send
  };
  static void check_length(const Active& receive);
  Ticket start(const Call& call);
  bool finished(Ticket ticket);

  Lane& lane_;
  const Call& whole_;
  int tag_;
  Ticket last_ = 0;
  bool moved_ = false;
  std::vector<Active> active_;  ///< in order of start
};

}  // namespace medley::algorithms
