// What a single call may ask for beyond its buffers. Written as {.backend = "mpi", .async = true}.
#pragma once

#include <chrono>
#include <string_view>

namespace medley {

/// Where a receive may take its message from, and the tag that matches every tag.
inline constexpr int any_source = -1;

struct Options {
  std::string_view backend{};                ///< a backend's name; empty: the comm's own choice
  bool async = false;                        ///< return a pending Work instead of waiting
  std::chrono::nanoseconds deadline{0};      ///< how long the operation may take; 0: the comm's default
  int tag = 0;                               ///< sends and receives match only on equal tags
  std::string_view algorithm{};              ///< such as "ring" or "native"; empty: the best known
  bool deterministic = false;                ///< the same bits from run to run
  void* stream = nullptr;                    ///< the CUDA stream that CUDA buffers are ordered by
};

}  // namespace medley
