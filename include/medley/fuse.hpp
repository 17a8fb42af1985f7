// Collects small collectives of one comm, so that many tensors travel in one message.
#pragma once

#include <medley/comm.hpp>
#include <medley/export.hpp>

namespace medley {

/// A fuse scope: while it lives, small async collectives on its comm are collected, and issued later in fewer messages.
///
/// - Collected: async collectives, except barrier and v-collectives. On host memory only tensors up to the fusion limit
///   (docs/fusion.md); larger ones are issued at once. Those on CUDA memory use one stream until the next flush.
/// - Issued: when the scope ends, at flush(), before a barrier, a v-collective, a list or a blocking collective on the
///   comm, and whenever 4 MiB or 4,096 tensors are collected.
/// - All ranks open, flush and end the scope between the same collectives of the comm, and make the same calls async.
/// - Waiting: each call has its own Work, which completes with its own tensor. Before it is issued, wait() is
///   Error(invalid) and test() returns false.
/// - Memory: until a collected tensor is issued, an operation on any comm that conflicts with it is Error(invalid).
/// - Not collected: sends, receives and lists.
/// - Nesting: scopes of one comm nest; the end of each issues what was collected.
class MEDLEY_API Fuse {
 public:
  explicit Fuse(Comm comm);
  /// Issues what is collected. It does not throw: errors are reported by the Works.
  ~Fuse();
  Fuse(const Fuse&) = delete;
  Fuse& operator=(const Fuse&) = delete;

  /// Issues what is collected now. Throws if the comm has failed; the collected Works have the error too.
  void flush();

 private:
  Comm comm_;
};

}  // namespace medley
