// Decides which linked ranks are suspected, silent or lost, from when they were last heard and from what the transport
// says. Used by the control thread alone; a function of the times it is given, so that tests run it on a clock of their own.
//
// Two questions are kept apart. Does the peer's *host* answer? Its kernel acknowledges what is sent to it, and accepts
// connections, even while its processes are stopped. Does the *rank* answer? Its heartbeats come.
//   the process is known to have ended                -> lost, after a grace for a goodbye that is under way
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
  std::chrono::milliseconds interval{200};        ///< between two looks
  std::chrono::milliseconds suspect_after{700};   ///< with the interval, a cut host is suspected within a second
  std::chrono::milliseconds silent_after{3000};   ///< of a rank whose host answers
  std::chrono::milliseconds lost_after{5000};
  std::chrono::milliseconds ended_grace{300};     ///< a goodbye may take a few hops while its process has already ended

  /// With MEDLEY_SUSPECT_AFTER and MEDLEY_LOST_AFTER, in seconds, as `variable` gives them. An Error of kind invalid names a
  /// value that is no time, or a loss that would come before its suspicion.
  MEDLEY_API static DetectorLimits from(const std::function<const char*(const char*)>& variable);
};

/// What TCP knows about one link.
struct LinkFacts {
  bool outstanding = false;              ///< something that was sent is not acknowledged
  std::uint64_t acknowledged = 0;        ///< bytes so far
  std::chrono::milliseconds quiet_for{}; ///< since the last segment from the peer's kernel
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

  /// A link to this rank is up: it is watched from now on.
  void linked(int rank, Time now);
  /// Bytes of the rank itself came.
  void heard(int rank, Time now);
  void transport(int rank, const LinkFacts& facts, Time now);
  /// Its host answered an attempt to connect.
  void probed(int rank, Time now);
  void process_ended(int rank, Time now);
  /// It left, was lost, or its last link is gone.
  void forget(int rank);

  /// Whether only a new connection can tell: what is sent on the link waits for TCP's next retransmission, which backs off.
  bool wants_probe(int rank) const;

  /// Whether it is to be sent heartbeats. Not for ever to one that is stopped: they would fill its buffers, and a full one
  /// looks like a host that does not acknowledge. TCP's keepalive asks its kernel instead.
  bool wants_beat(int rank, Time now) const;

  /// What changed since the last look. A look that comes late was held up here, so the pause counts for nobody.
  std::vector<Finding> look(Time now);

 private:
  struct Peer {
    Time heard;       ///< from the rank
    Time answered;    ///< from its kernel
    Time delivered;   ///< when nothing sent to it was left unacknowledged, or more of it was
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
