// The tags with which a test tells the backend `explodes` what to throw where. Nothing it throws is a medley::Error, but for one.
#pragma once

namespace medley::test {

/// `lost_in_poll` alone is an error of Medley's: the peer is lost, which ends the comm.
enum ExplodingTag : int { in_start = 901, in_poll, in_progress, in_check, lost_in_poll };

/// What a receive with the last tag leaves in the caller's memory when the engine gives it back: whether its lane was aborted by then.
inline constexpr float given_back_after_abort = 1, given_back_before_abort = 2;

}  // namespace medley::test
