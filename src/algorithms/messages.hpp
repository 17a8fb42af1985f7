// The sends and receives that one filled-in collective is made of: started at once, awaited one by one or
// together. Every algorithm talks to its peers through this.
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
  /// A message on its way; 0 stands for one that is complete.
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

  /// Moves all; how many are left.
  std::size_t poll();

  /// Whether anything moved since the last question: whoever waits may not sleep then.
  bool take_moved() { return std::exchange(moved_, false); }
  std::vector<int> awaited() const;
  /// Hands over what is not complete, to be released once its lane was aborted.
  std::vector<Transfer*> abandon() noexcept;

 private:
  struct Active {
    Ticket ticket;
    Transfer* transfer;
    int peer;
    std::int64_t expected;  ///< bytes that a receive must bring, -1 of a send
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
