// The tags with which a test tells the backend `explodes` what to throw where. Nothing it throws is a medley::Error.
#pragma once

namespace medley::test {

enum ExplodingTag : int { in_start = 901, in_poll, in_progress, in_check };

}  // namespace medley::test
