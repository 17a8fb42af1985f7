// Keeps threads off the core that the launcher bound a rank to. Used wherever Medley or a library starts a thread.
#pragma once

#include <medley/export.hpp>
#include <string>

namespace medley {

/// While it lives, the calling thread runs on all cores that the launcher had before it bound this rank
/// (MEDLEY_CORES), and so do the threads that it starts, for good. Does nothing in a rank that the launcher
/// did not bind.
class MEDLEY_API UnboundThreadScope {
 public:
  UnboundThreadScope();
  ~UnboundThreadScope();
  UnboundThreadScope(const UnboundThreadScope&) = delete;
  UnboundThreadScope& operator=(const UnboundThreadScope&) = delete;

 private:
  std::string own_;  ///< where this thread goes back to; empty: it never left
};

}  // namespace medley
