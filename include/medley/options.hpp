// What a single call may ask for beyond its buffers. Written as {.backend = "mpi", .async = true}.
#pragma once

#include <chrono>
#include <string_view>

namespace medley {

/// Where a receive may take its message from, and the tag that matches every tag.
inline constexpr int any_source = -1;

struct Options {
  std::string_view backend{};                ///< a backend's name; empty or "auto": by the comm's rules
  bool async = false;                        ///< return a pending Work instead of waiting
  std::chrono::nanoseconds deadline{0};      ///< how long the operation may take; 0: the comm's default
  std::chrono::nanoseconds max_wait{0};      ///< a blocking collective that takes longer comes back pending; 0: never does
  int tag = 0;                               ///< sends and receives match only on equal tags
  std::string_view algorithm{};              ///< such as "ring" or "native"; empty: the best known
  bool deterministic = false;                ///< the same bits from run to run
  void* stream = nullptr;                    ///< the CUDA stream that CUDA buffers are ordered by
};

/// What a new comm may be told; every rank says the same.
struct CommOptions {
  std::string_view rules{};                  ///< counted before the context's; see medley/rules.hpp
  std::chrono::nanoseconds deadline{0};      ///< default of its waits; 0: as the comm it is made from
};

}  // namespace medley
