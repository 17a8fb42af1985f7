// Options of a single call. Written as {.backend = "mpi", .async = true}.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace medley {

class ErrorFeedback;

/// The source of a receive that accepts messages from any rank.
inline constexpr int any_source = -1;

/// Options of one call. Fields left out take the comm's or context's defaults. The strings must live until the call
/// returns; an async operation keeps copies.
struct Options {
  /// A backend's name. Empty or "auto": the rules decide, then the route table, then the built-in order
  /// (docs/routing.md)
  std::string_view backend{};
  bool async = false;  ///< return a pending Work instead of waiting
  /// How long the operation may take from now. When the time is over, the operation and its comm fail. 0: the comm's
  /// default. To wait for a limited time without failing the comm use Work::wait_for()
  std::chrono::nanoseconds deadline{0};
  /// How long a blocking call on host memory waits before it returns a pending Work instead; not for batch() and
  /// sendrecv(). 0: until the operation is complete
  std::chrono::nanoseconds max_wait{0};
  int tag = 0;                   ///< sends and receives match only on equal tags
  std::string_view algorithm{};  ///< such as "ring" or "native"; empty: the route's
  bool deterministic = false;    ///< the same bits from run to run
  void* stream = nullptr;        ///< the CUDA stream that orders operations on CUDA buffers
  /// A codec such as "int8" (docs/compression.md). "none": no compression, whatever the rules say
  std::string_view compress{};
  /// The error feedback of this tensor, for lossy reductions. The operation uses it until it is complete
  ErrorFeedback* feedback = nullptr;
};

/// Options of a new comm; every rank passes the same.
struct CommOptions {
  std::string_view rules{};  ///< see medley/rules.hpp; they come before the context's. Read during the call
  /// The default of its operations; 0: that of the parent comm or of the context
  std::chrono::nanoseconds deadline{0};
  /// Whether small collectives on host memory that are pending together share messages. The ranks agree on each
  /// message, which takes as long as an all_reduce of 8 bytes. That helps programs that issue many async operations
  /// before they wait, and slows those that block (docs/fusion.md).
  bool fuse = false;
  /// Whether every receive has exactly the size of its message. Sizes may then decide the routes of messages, a receive
  /// of another size is Error(mismatch) on all ranks, and both ends of a message name the same backend or neither does
  /// (docs/guarantees.md). Empty: as the parent comm, or as the world for Context::make_comm().
  std::optional<bool> exact{};
};

}  // namespace medley
