// Collects small collectives of one comm, so that many tensors travel in one message.
#pragma once

#include <medley/comm.hpp>
#include <medley/export.hpp>

namespace medley {

/// While it lives, async collectives with equal parts on its comm are collected instead of issued, unless their tensors are too large to be
/// fused: those are issued at once. Collected ones are issued, fused, when the scope ends, at flush(), before any collective on the comm that
/// is not async or has unequal parts, and whenever 4 MiB or 4,096 tensors are collected. All ranks
/// open, flush and end it at the same places among the collectives of the comm, like a collective, and make the same calls async.
/// A collected operation belongs to its Work, which completes with its own tensor, but may be waited for only once it is issued:
/// until then wait() is Error(invalid), and test() returns false. So is an operation, on any comm, that touches the memory of a
/// collected one. Sends and receives are not collected. Scopes of one comm nest; each end issues what was collected.
class MEDLEY_API Fuse {
 public:
  explicit Fuse(Comm comm);
  /// Errors of the operations it issues are reported by their Works.
  ~Fuse();
  Fuse(const Fuse&) = delete;
  Fuse& operator=(const Fuse&) = delete;

  /// Issues what is collected now. Throws if the comm has failed; the collected Works have the error too.
  void flush();

 private:
  Comm comm_;
};

}  // namespace medley
