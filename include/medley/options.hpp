// Options of a single call. Written as {.backend = "mpi", .async = true}.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace medley {

class ErrorFeedback;

/// The source of a receive that accepts messages from any rank.
inline constexpr int any_source = -1;

/// Options of one call. Fields left out take the comm's or context's defaults.
struct Options {
  /// A backend's name; empty or "auto": by the rules, then the route table, then the built-in order (docs/routing.md)
  std::string_view backend{};
  bool async = false;  ///< return a pending Work instead of waiting
  /// From now; when it passes, the comm fails; 0: the comm's default. Work::wait_for() gives up without failing it
  std::chrono::nanoseconds deadline{0};
  /// A blocking call on host memory that takes longer returns a pending Work, except batch() and sendrecv(); 0: never
  std::chrono::nanoseconds max_wait{0};
  int tag = 0;                   ///< sends and receives match only on equal tags
  std::string_view algorithm{};  ///< such as "ring" or "native"; empty: that of the route
  bool deterministic = false;    ///< bitwise reproducible from run to run
  void* stream = nullptr;        ///< the CUDA stream that orders operations on CUDA buffers
  /// A codec such as "int8" (docs/compression.md); "none": not even if a rule says so
  std::string_view compress{};
  /// Of the tensor, for lossy reductions; belongs to the operation until it is complete
  ErrorFeedback* feedback = nullptr;
};

/// Options of a new comm; every rank passes the same.
struct CommOptions {
  std::string_view rules{};  ///< take precedence over the context's; see medley/rules.hpp
  /// Default for its operations; 0: that of the parent comm or of the context
  std::chrono::nanoseconds deadline{0};
  /// Fuses small collectives on host memory that are pending together. The ranks agree on each message, which takes as
  /// long as an all_reduce of 8 bytes: it pays for programs that issue many async before they wait, and costs those
  /// that block (docs/fusion.md).
  bool fuse = false;
  /// Whether every receive has exactly the size of its message. Sizes may then decide the routes of messages, a receive
  /// of another size is Error(mismatch) on all ranks, and both ends of a message name the same backend or neither does
  /// (docs/guarantees.md). Empty: as the parent comm, or as the world for Context::make_comm().
  std::optional<bool> exact{};
};

}  // namespace medley
