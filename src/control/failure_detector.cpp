#include "control/failure_detector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <medley/error.hpp>

namespace medley::control {
namespace {

// How long a silent rank is sent heartbeats: 9 KB in total, which fits into any buffer.
constexpr std::chrono::seconds beats_to_the_silent{60};
// After that, TCP keep-alive probes once a second.
constexpr std::chrono::milliseconds keepalive_slack{1500};

using namespace std::chrono_literals;

double in_seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

void read_seconds(const char* name, const std::function<const char*(const char*)>& variable,
                  std::chrono::milliseconds& limit) {
  const char* text = variable(name);
  if (!text || !*text) return;
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (*end != '\0' || !std::isfinite(value) || value < 0.1 || value > 1e6) {
    throw Error(ErrorKind::invalid, fmt::format("{}={} is not a time: give seconds, from 0.1 to 1000000", name, text));
  }
  limit = std::chrono::milliseconds(std::llround(value * 1000));
}

}  // namespace

DetectorLimits DetectorLimits::from(const std::function<const char*(const char*)>& variable) {
  DetectorLimits limits;
  read_seconds("MEDLEY_LOST_AFTER", variable, limits.lost_after);
  limits.suspect_after = std::min(limits.suspect_after, limits.lost_after / 2);
  read_seconds("MEDLEY_SUSPECT_AFTER", variable, limits.suspect_after);
  if (limits.suspect_after >= limits.lost_after) {
    throw Error(ErrorKind::invalid,
                fmt::format("MEDLEY_SUSPECT_AFTER ({:g} s) must be shorter than MEDLEY_LOST_AFTER ({:g} s)",
                            in_seconds(limits.suspect_after), in_seconds(limits.lost_after)));
  }
  return limits;
}

void FailureDetector::linked(int rank, Time now) { peers_.try_emplace(rank, Peer{now, now, now, now}); }

void FailureDetector::heard(int rank, Time now) {
  if (const auto found = peers_.find(rank); found != peers_.end()) found->second.heard = found->second.answered = now;
}

void FailureDetector::transport(int rank, const LinkFacts& facts, Time now) {
  const auto found = peers_.find(rank);
  if (found == peers_.end()) return;
  Peer& peer = found->second;
  peer.answered = std::max(peer.answered, now - facts.quiet_for);
  if (!facts.outstanding || facts.acknowledged > peer.acknowledged) peer.delivered = now;
  peer.acknowledged = facts.acknowledged;
}

void FailureDetector::probed(int rank, Time now) {
  if (const auto found = peers_.find(rank); found != peers_.end()) found->second.probed = now;
}

void FailureDetector::process_ended(int rank, Time now) { ended_.try_emplace(rank, now); }

void FailureDetector::forget(int rank) {
  peers_.erase(rank);
  ended_.erase(rank);
}

bool FailureDetector::wants_probe(int rank) const {
  const auto found = peers_.find(rank);
  return found != peers_.end() && found->second.state == Peer::State::suspected;
}

bool FailureDetector::wants_beat(int rank, Time now) const {
  const auto found = peers_.find(rank);
  return found == peers_.end() || now - found->second.heard < beats_to_the_silent;
}

/// When both directions last worked. A link that only receives may lose its own packets on the way.
FailureDetector::Time FailureDetector::host_answered(const Peer& peer) {
  return std::max(std::min(peer.answered, peer.delivered), peer.probed);
}

void FailureDetector::discount(std::chrono::nanoseconds pause, Time now) {
  for (auto& [rank, peer] : peers_) {
    for (Time* time : {&peer.heard, &peer.answered, &peer.delivered, &peer.probed})
      *time = std::min(*time + pause, now);
  }
}

std::optional<FailureDetector::Finding> FailureDetector::judge(int rank, Peer& peer, Time now) const {
  const auto host_quiet = now - host_answered(peer), rank_quiet = now - peer.heard;
  if (host_quiet >= limits_.lost_after) {
    return Finding{Kind::lost, rank, fmt::format("its host has not answered for {:.1f} s", in_seconds(host_quiet))};
  }
  const Peer::State before = peer.state;
  const auto slack = wants_beat(rank, now) ? 0ms : keepalive_slack;
  peer.state = host_quiet >= limits_.suspect_after + slack ? Peer::State::suspected
               : rank_quiet >= limits_.silent_after        ? Peer::State::silent
                                                           : Peer::State::present;
  if (peer.state == before) return std::nullopt;
  switch (peer.state) {
    case Peer::State::suspected:
      return Finding{Kind::suspected, rank,
                     fmt::format("its host has not answered for {:.1f} s; it counts as lost after {:g} s",
                                 in_seconds(host_quiet), in_seconds(limits_.lost_after))};
    case Peer::State::silent:
      return Finding{Kind::silent, rank,
                     fmt::format("it has not been heard for {:.1f} s though its host answers: stopped, or "
                                 "without a core; deadlines decide",
                                 in_seconds(rank_quiet))};
    case Peer::State::present: break;
  }
  return Finding{Kind::retracted, rank, "it answers again"};
}

std::vector<FailureDetector::Finding> FailureDetector::look(Time now) {
  const auto since = last_look_ ? now - *last_look_ : std::chrono::nanoseconds(limits_.interval);
  last_look_ = now;
  std::vector<Finding> findings;
  for (const auto& [rank, when] : ended_) {
    if (now - when >= limits_.ended_grace) findings.push_back({Kind::lost, rank, "its process ended"});
  }
  if (since > 2 * limits_.interval) {
    discount(since - limits_.interval, now);
  } else {
    for (auto& [rank, peer] : peers_) {
      if (ended_.contains(rank)) continue;  // the grace period decides
      if (auto finding = judge(rank, peer, now)) findings.push_back(std::move(*finding));
    }
  }
  for (const Finding& finding : findings) {
    if (finding.kind == Kind::lost) forget(finding.rank);
  }
  return findings;
}

}  // namespace medley::control
