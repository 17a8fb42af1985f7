// Options of a single call. Written as {.backend = "mpi", .async = true}.
#pragma once

#include <chrono>
#include <string_view>

namespace medley {

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
};

/// Options of a new comm; every rank passes the same.
struct CommOptions {
  std::string_view rules{};                  ///< take precedence over the context's; see medley/rules.hpp
  std::chrono::nanoseconds deadline{0};      ///< default of its waits; 0: that of the parent comm
};

}  // namespace medley
