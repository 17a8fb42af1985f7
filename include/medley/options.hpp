// Options of a single call. Written as {.backend = "mpi", .async = true}.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace medley {

class ErrorFeedback;

/// The source of a receive that accepts messages from any rank.
inline constexpr int any_source = -1;

struct Options {
  std::string_view backend{};                ///< a backend's name; empty or "auto": chosen by the comm's rules
  bool async = false;                        ///< return a pending Work instead of waiting
  std::chrono::nanoseconds deadline{0};      ///< how long the operation may take; 0: the comm's default
  std::chrono::nanoseconds max_wait{0};      ///< a blocking collective that takes longer returns pending; 0: never
  int tag = 0;                               ///< sends and receives match only on equal tags
  std::string_view algorithm{};              ///< such as "ring" or "native"; empty: the fastest known
  bool deterministic = false;                ///< bitwise reproducible from run to run
  void* stream = nullptr;                    ///< the CUDA stream that orders operations on CUDA buffers
  std::string_view compress{};               ///< a codec such as "int8" (docs/compression.md); "none": not even if a rule says so
  ErrorFeedback* feedback = nullptr;         ///< of the tensor, for lossy reductions; belongs to the operation until it is complete
};

/// Options of a new comm; every rank passes the same.
struct CommOptions {
  std::string_view rules{};                  ///< take precedence over the context's; see medley/rules.hpp
  std::chrono::nanoseconds deadline{0};      ///< default of its waits; 0: that of the parent comm
  /// Fuses small collectives on host memory that are pending together. The ranks agree on each message, which takes as long as an
  /// all_reduce of 8 bytes: it pays for programs that issue many async before they wait, and costs those that block (docs/routing.md).
  bool fuse = false;
  /// Whether every receive has exactly the size of its message, so that sizes may decide the routes of messages. Both ends name its backend,
  /// or none does (docs/guarantees.md). Another size is then Error(mismatch) on all ranks. Empty: as the parent comm, or the world.
  std::optional<bool> exact{};
};

}  // namespace medley
