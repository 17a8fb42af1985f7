// When the ranks of an operation were ready for it: what tells waiting for a late rank from a slow transfer.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "trace/trace.hpp"

namespace medley::reconcile {

/// Numbers the messages of one rank between the same two ranks, in order. Must see every message from the first on.
class MessageNumbers {
 public:
  std::uint64_t next(const trace::Event& event) { return ++counts_[{event.group, event.op == Op::send, event.peer}]; }

 private:
  std::map<std::tuple<std::uint32_t, bool, std::int64_t>, std::uint64_t> counts_;
};

/// A rank that is ready for an operation. On a device both times are the kernel's start: the host calls far ahead of
/// it.
struct Ready {
  int rank = -1;
  double called = 0, started = 0;  ///< ns
};

class Meetings {
 public:
  explicit Meetings(const trace::Trace& trace) : trace_(trace) {}

  /// `message`: by MessageNumbers; 0 for collectives, and for messages whose first ones are not recorded.
  void add(const trace::Event& event, int rank, std::uint64_t message);
  /// The last of the ranks that `rank` had to wait for in this operation, itself included; none where that is not
  /// known: a rank without a trace, a source without sequence numbers or starts, hosts whose clocks cannot be compared.
  std::optional<Ready> last_ready(const trace::Event& event, int rank, std::uint64_t message) const;

 private:
  struct Meeting {
    Op op{};
    std::int64_t bytes = 0;
    int ranks = 0;
    bool differs = false;  ///< ranks disagree on what it is: the numbers do not match operations
    Ready last, root;      ///< of a message, `root` is the sender and `last` the receiver
  };
  using Key = std::tuple<std::uint32_t, std::int64_t, std::int64_t, std::uint64_t>;
  struct Hash {
    std::size_t operator()(const Key& key) const noexcept;
  };
  bool comparable(const trace::Event& event) const;
  static std::optional<Key> key_of(const trace::Event& event, int rank, std::uint64_t message);

  const trace::Trace& trace_;
  std::unordered_map<Key, Meeting, Hash> meetings_;
};

}  // namespace medley::reconcile
