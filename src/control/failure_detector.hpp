// Decides which linked ranks are suspected, silent or lost, from the time they were last heard and from the transport's
// state. Used by the control thread only; a pure function of the times passed in, so that tests run it on a simulated
// clock.
//
// It separates two questions. Does the peer's *host* answer? Its kernel acknowledges data and accepts
// connections even while its processes are stopped. Does the *rank* answer? Its heartbeats arrive.
//   the process is known to have ended                -> lost, after a grace period for a goodbye in transit
//   the host does not acknowledge for `suspect_after` -> suspected; for `lost_after` -> lost
//   the host acknowledges, no heartbeat               -> silent: stopped or starved; never lost, deadlines decide
#pragma once

#include <medley/export.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace medley::control {

struct DetectorLimits {
  std::chrono::milliseconds interval{200};  ///< between two calls of look()
  /// Together with the interval: a disconnected host is suspected within a second
  std::chrono::milliseconds suspect_after{700};
  std::chrono::milliseconds silent_after{3000};  ///< for a rank whose host answers
  std::chrono::milliseconds lost_after{5000};
  std::chrono::milliseconds ended_grace{300};  ///< a goodbye may take a few hops after its process has ended

  /// Reads MEDLEY_SUSPECT_AFTER and MEDLEY_LOST_AFTER, in seconds, through `variable`. Throws an Error of kind invalid
  /// for a value that is not a time, or a loss limit below the suspicion limit.
  MEDLEY_API static DetectorLimits from(const std::function<const char*(const char*)>& variable);
};

/// The state of one link, from TCP.
struct LinkFacts {
  bool outstanding = false;               ///< sent data is not acknowledged yet
  std::uint64_t acknowledged = 0;         ///< bytes so far
  std::chrono::milliseconds quiet_for{};  ///< since the last segment from the peer's kernel
};

class MEDLEY_API FailureDetector {
 public:
  using Time = std::chrono::steady_clock::time_point;
  enum class Kind : std::uint8_t { suspected, silent, retracted, lost };
  struct Finding {
    Kind kind;
    int rank;
    std::string why;
  };

  explicit FailureDetector(DetectorLimits limits) : limits_(limits) {}

  /// A link to this rank is up: watch it from now on.
  void linked(int rank, Time now);
  /// Data from the rank itself arrived.
  void heard(int rank, Time now);
  void transport(int rank, const LinkFacts& facts, Time now);
  /// Its host answered an attempt to connect.
  void probed(int rank, Time now);
  void process_ended(int rank, Time now);
  /// The rank left, was lost, or its last link closed.
  void forget(int rank);

  /// Whether only a new connection can tell: data on the link waits for TCP's next retransmission, which backs off.
  bool wants_probe(int rank) const;

  /// Whether to send it heartbeats. A stopped rank gets them for a limited time: they would fill its buffers, and a
  /// full buffer looks like a host that does not acknowledge. TCP keep-alive probes its kernel instead.
  bool wants_beat(int rank, Time now) const;

  /// Changes since the last call. If the call is late, this process itself was delayed, so that pause counts against no
  /// rank.
  std::vector<Finding> look(Time now);

 private:
  struct Peer {
    Time heard;      ///< from the rank
    Time answered;   ///< from its kernel
    Time delivered;  ///< when everything sent was acknowledged, or more of it was
    Time probed;
    std::uint64_t acknowledged = 0;
    enum class State : std::uint8_t { present, suspected, silent } state = State::present;
  };
  static Time host_answered(const Peer& peer);
  void discount(std::chrono::nanoseconds pause, Time now);
  std::optional<Finding> judge(int rank, Peer& peer, Time now) const;

  DetectorLimits limits_;
  std::map<int, Peer> peers_;
  std::map<int, Time> ended_;
  std::optional<Time> last_look_;
};

}  // namespace medley::control
