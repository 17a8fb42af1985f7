// The errors of a rank whose peer aborted or left their comm, in one wording for all backends. A lane throws them in check()
// and from its transfers; the first it makes from the peer's notice, which Lane::abort() sent.
#pragma once

#include <medley/error.hpp>
#include <medley/export.hpp>
#include <string_view>
#include <vector>

namespace medley {

/// `kind`: the ErrorKind as the notice encodes it. `reason`: the text of the peer's error; empty if the notice has
/// none. `at_fault`: the ranks that the peer's error named; if it named none, the error names the peer.
MEDLEY_API Error peer_abort(int peer, int kind, std::string_view reason, std::vector<int> at_fault);

/// The peer is awaited, and left in order.
MEDLEY_API Error peer_left(int peer);

}  // namespace medley
