// Which routes an operation has on a comm: every backend's own way and every algorithm by name. Used by bench and tune.
#pragma once

#include <medley/medley.hpp>
#include <string>
#include <vector>

namespace medley::tune {

/// Which of a backend's algorithms to look at.
struct Wanted {
  std::vector<std::string> backends;     ///< "auto" stands for the routes of rules and table
  bool every_algorithm = false;
  std::vector<std::string> algorithms{}; ///< only these, where there are such; empty: the backend's own choice
};

/// A route as rows show it.
struct Candidate {
  Choice route;          ///< as it is called
  std::string backend;   ///< as it is shown: "auto" for an empty one
  std::string algorithm; ///< "native", "filled", or its name
};

/// Collective: each is tried once with a few bytes. What the comm or the operation does not have is left out, on all
/// ranks alike.
std::vector<Candidate> candidates(Comm& comm, Op op, DType dtype, Memory memory, const Wanted& wanted);

}  // namespace medley::tune
