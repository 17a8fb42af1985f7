// The ideal machine of the progress guarantee (docs/guarantees.md): decides whether a program must finish on
// Medley. An operation starts on a rank once the earlier operations there that touch the same memory are
// complete, and the earlier collectives of its comm, or messages of its pair, direction and tag, have
// started; it is complete once it has started on all its ranks.
#pragma once

#include <string>
#include <vector>

#include "soak/program.hpp"

namespace medley::soak {

/// A blocked thread of a rank.
struct Stuck {
  int rank, phase, thread;
  std::size_t position;  ///< in its stream
};

struct Verdict {
  bool finishes = true;
  std::vector<Stuck> stuck{};
  std::string mistake{};  ///< what makes the program wrong rather than stuck, such as memory touched under an
                          ///< operation
};

Verdict run_ideal(const Program& program);

}  // namespace medley::soak
