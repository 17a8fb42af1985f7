// The routes of an operation on a comm: every backend's own implementation and every named algorithm. Used by bench and
// tune.
#pragma once

#include <medley/medley.hpp>
#include <string>
#include <vector>

namespace medley::tune {

/// Which backends and algorithms to consider.
struct Wanted {
  std::vector<std::string> backends;  ///< "auto": the routes of rules and table
  bool every_algorithm = false;
  std::vector<std::string> algorithms{};  ///< only these, where they exist; empty: the backend's own choice
  std::vector<std::string> codecs{};      ///< collectives also compressed by these, where the element type allows it
};

/// A route as output rows show it.
struct Candidate {
  Choice route;           ///< as passed to the call
  std::string backend;    ///< as shown: "auto" for an empty one
  std::string algorithm;  ///< "native", "filled", or its name
};

/// Collective: throws Error(invalid) that names the first wanted algorithm which neither Medley has, for any operation,
/// nor a backend for one of these.
void check_algorithms(Comm& comm, const std::vector<Op>& ops, DType dtype, Memory memory, const Wanted& wanted);

/// Collective: tries each once with a few bytes. Leaves out what the comm or the operation does not have, on all
/// ranks alike.
std::vector<Candidate> candidates(Comm& comm, Op op, DType dtype, Memory memory, const Wanted& wanted);

}  // namespace medley::tune
