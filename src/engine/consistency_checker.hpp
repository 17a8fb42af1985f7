// Check mode: compares what the ranks of a comm called as their k-th collective, before any of them starts it.
// The control thread of a comm's first rank is its checker.
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
  std::string call;   ///< such as "all_reduce of 1024 f32 by sum"
  std::string route;  ///< such as "shm" or "mpi, ring"

  bool operator==(const Fingerprint&) const = default;
};
MEDLEY_API Fingerprint fingerprint_of(const Call& call, int ranks, const std::string& backend);

/// For comms with stream lanes: how many collectives of each a rank had issued on its device when it issued this one.
/// NCCL needs one order of comms on all ranks, so ranks that share two comms must report the same for both.
using IssuedBefore = std::map<std::string, std::uint64_t>;

class MEDLEY_API ConsistencyChecker {
 public:
  struct Verdict {
    bool agreed = false;
    std::string difference{};  ///< a sentence and a table of what each rank called
    std::vector<int> ranks{};  ///< of the comm: the first two that differ
  };
  /// Adds one rank's call; returns a verdict when all `size` have called, or at the first difference.
  std::optional<Verdict> hear(const std::string& comm, std::uint64_t sequence, int rank, int size,
                              const Fingerprint& call, const IssuedBefore& before = {});
  /// The comm is destroyed.
  void forget(const std::string& comm);

 private:
  struct Heard {
    Fingerprint call;
    IssuedBefore before;
  };
  using Calls = std::map<int, Heard>;  ///< by rank
  static std::optional<Verdict> compare_calls(const Calls& calls, std::uint64_t sequence, int size);
  static std::optional<Verdict> compare_orders(const Calls& calls, std::uint64_t sequence);
  std::map<std::pair<std::string, std::uint64_t>, Calls> open_;
};

}  // namespace medley::core
