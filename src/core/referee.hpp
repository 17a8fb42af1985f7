// Check mode: compares what the ranks of a comm called as their k-th collective, before any of them starts it.
// The control thread of a comm's first rank is its referee.
#pragma once

#include <cstdint>
#include <map>
#include <medley/backend.hpp>
#include <optional>
#include <string>
#include <vector>

#include <medley/export.hpp>

namespace medley::core {

/// What must be equal on all ranks of a collective, in a form that is sent and printed.
struct Fingerprint {
  std::string call;    ///< such as "all_reduce of 1024 f32 by sum"
  std::string route;   ///< such as "shm" or "mpi, ring"

  bool operator==(const Fingerprint&) const = default;
};
MEDLEY_API Fingerprint fingerprint_of(const Call& call, int ranks, const std::string& backend);

class MEDLEY_API Referee {
 public:
  struct Verdict {
    bool agreed = false;
    std::string difference{};   ///< a sentence and a table of what each rank called
  };
  /// Takes one rank's call; a verdict when all `size` have called, or at the first that differs.
  std::optional<Verdict> hear(const std::string& comm, std::uint64_t sequence, int rank, int size, const Fingerprint& call);
  /// The comm is gone.
  void forget(const std::string& comm);

 private:
  std::map<std::pair<std::string, std::uint64_t>, std::map<int, Fingerprint>> open_;
};

}  // namespace medley::core
