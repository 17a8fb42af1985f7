// The tags with which a test selects what the backend `explodes` throws and where. All but one are not a medley::Error.
#pragma once

namespace medley::test {

/// Only `lost_in_poll` is an error of Medley: the peer is lost, which fails the comm.
enum ExplodingTag : int { in_start = 901, in_poll, in_progress, in_check, lost_in_poll };

/// What a receive with the last tag writes into the caller's memory when the engine releases it: whether its lane was
/// aborted by then.
inline constexpr float given_back_after_abort = 1, given_back_before_abort = 2;

}  // namespace medley::test
