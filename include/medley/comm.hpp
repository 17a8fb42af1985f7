// A Comm is an ordered set of ranks with its own sequence of operations. Copies refer to the same comm.
// Every rank of a comm issues the same collectives in the same order; sends and receives match by (peer, tag).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <medley/buffer.hpp>
#include <medley/export.hpp>
#include <medley/options.hpp>
#include <medley/work.hpp>

namespace medley {

namespace core {
class CommState;
}

/// Elements per rank and the offset of each rank's part, for v-collectives. Without offsets the parts are contiguous.
/// Both lists are copied when the operation is issued.
struct Parts {
  std::span<const std::int64_t> counts;
  std::span<const std::int64_t> offsets{};
};

/// One message of a batch; make them with outgoing() and incoming().
struct Message {
  bool is_send = true;
  Buffer buffer;
  int peer = 0;  ///< receiver of a send, sender of a receive
  int tag = 0;
};
/// A send to rank `to`.
MEDLEY_API Message outgoing(ConstBuffer buffer, int to, int tag = 0);
/// A receive from rank `from`, or any_source.
MEDLEY_API Message incoming(Buffer buffer, int from, int tag = 0);

/// What holds for every operation:
///
/// - Blocking: on host memory an operation blocks until it is complete, unless Options::async is set. Then it returns a
///   pending Work.
/// - CUDA: on CUDA memory an operation is ordered in Options::stream, after the work already in it. Over nccl the host
///   does not wait for the device. Over other backends a call without async waits until the copy of the result to the
///   device is enqueued.
/// - Order: every rank issues the comm's collectives in the same order, with the same operation, element type,
///   reduction and root.
/// - Counts: every rank passes the same counts, except in v-collectives. all_gather's output, reduce_scatter's input
///   and both sides of all_to_all have size() equal parts; so do gather's output and scatter's input on the root.
/// - Root: arguments that only the root uses (the output of reduce and gather, the input of scatter) are ignored on
///   other ranks: pass {}.
/// - In place: pass the same buffer twice (all_reduce, reduce, all_to_all), or pass as the small buffer the caller's
///   own part of the large one (gather, scatter, all_gather, reduce_scatter). Any other overlap is an error.
/// - Memory: buffers belong to the operation until it is complete. Lists of counts, and the strings of Options, are
///   copied before the call returns.
/// - Threads: threads may use different comms at the same time. One thread at a time uses a comm, so that all ranks
///   issue its collectives in one order.
/// - Errors: an operation that fails throws Error, and its comm fails on all ranks: later calls on it throw the first
///   cause. The comm stays usable after wrong arguments (Error(invalid); nothing was sent) and after a message that is
///   longer than its buffer.
/// - End: destroying the last copy is local and returns at once; it is not collective. Pending operations keep the comm
///   alive. A rank may destroy its comm, or leave the job, while what it sent is not received yet: small sends that
///   Medley has buffered are delivered first, within a few seconds. A rank that still waits for one that has left gets
///   Error(rank_lost).
class MEDLEY_API Comm {
 public:
  int rank() const noexcept;                 ///< of this process in the comm, from 0
  int size() const noexcept;                 ///< number of ranks
  const std::string& name() const noexcept;  ///< unique in the job; errors and traces use it

  // Sends and receives. Messages of one peer and tag match in the order in which they were issued.
  /// Returns when the buffer may be used again: small messages are buffered, so that may be before the peer has called
  /// recv.
  Work send(const ConstBuffer& buffer, int to, const Options& options = {});
  /// The buffer may be larger than the message, unless the comm has exact sizes (CommOptions::exact). A message that is
  /// longer than the buffer is Error(mismatch). With any_source it takes the first message with its tag; Work::source()
  /// gives the sender.
  Work recv(const Buffer& buffer, int from, const Options& options = {});
  /// A send and a receive that proceed together.
  Work sendrecv(const ConstBuffer& outgoing, int to, const Buffer& incoming, int from, const Options& options = {});
  /// Several messages that proceed together; complete when all are.
  Work batch(std::span<const Message> messages, const Options& options = {});
  Work batch(std::initializer_list<Message> messages, const Options& options = {}) {
    return batch(std::span(messages.begin(), messages.size()), options);
  }

  // Collectives.
  /// Copies the root's buffer to all ranks.
  Work broadcast(const Buffer& buffer, int root, const Options& options = {});
  /// The root's output gets the combination of all inputs.
  Work reduce(const ConstBuffer& in, const Buffer& out, ReduceOp op, int root, const Options& options = {});
  Work reduce(const Buffer& inout, ReduceOp op, int root, const Options& options = {}) {
    return reduce(inout, inout, op, root, options);
  }
  /// Every rank's output gets the combination of all inputs, with the same bits.
  Work all_reduce(const ConstBuffer& in, const Buffer& out, ReduceOp op, const Options& options = {});
  Work all_reduce(const Buffer& inout, ReduceOp op, const Options& options = {}) {
    return all_reduce(inout, inout, op, options);
  }
  /// The root's output gets every rank's input, in rank order.
  Work gather(const ConstBuffer& in, const Buffer& out, int root, const Options& options = {});
  /// Every rank's output gets every rank's input, in rank order.
  Work all_gather(const ConstBuffer& in, const Buffer& out, const Options& options = {});
  /// Rank i's output gets part i of the root's input.
  Work scatter(const ConstBuffer& in, const Buffer& out, int root, const Options& options = {});
  /// Rank i's output gets part i of the combination of all inputs.
  Work reduce_scatter(const ConstBuffer& in, const Buffer& out, ReduceOp op, const Options& options = {});
  /// Part j of rank i's output is part i of rank j's input.
  Work all_to_all(const ConstBuffer& in, const Buffer& out, const Options& options = {});
  /// Complete when all ranks have called it.
  Work barrier(const Options& options = {});
  /// On CUDA memory the barrier is ordered after the work already in the stream on every rank, as operations on buffers
  /// are.
  Work barrier(Memory memory, const Options& options = {});

  // v-collectives: parts of different sizes. For all_gatherv and reduce_scatterv every rank passes the counts of all
  // ranks.
  /// Part i of the root's output gets rank i's input; both must have the same count.
  Work gatherv(const ConstBuffer& in, const Buffer& out, const Parts& out_parts, int root, const Options& options = {});
  /// Rank i's output gets part i of the root's input; both must have the same count.
  Work scatterv(const ConstBuffer& in, const Parts& in_parts, const Buffer& out, int root, const Options& options = {});
  /// Part i of every rank's output gets rank i's input; both must have the same count.
  Work all_gatherv(const ConstBuffer& in, const Buffer& out, const Parts& out_parts, const Options& options = {});
  /// Rank i's output gets part i of the combination of all inputs; both must have the same count.
  Work reduce_scatterv(const ConstBuffer& in, const Parts& in_parts, const Buffer& out, ReduceOp op,
                       const Options& options = {});
  /// Part j of rank i's output gets part i of rank j's input; both must have the same count.
  Work all_to_allv(const ConstBuffer& in, const Parts& in_parts, const Buffer& out, const Parts& out_parts,
                   const Options& options = {});

  // Lists of tensors. A list gives the results of one call for each tensor with the same options. Tensors up to the
  // fusion limit share messages, one for each type and reduction (docs/fusion.md). All ranks pass lists of the same
  // counts in the same order. No tensor may overlap another that is written. A list starts when no earlier operation
  // conflicts with any of its tensors; its Work is complete when all are. Inside a fuse scope (medley/fuse.hpp) a list
  // is issued at once, after what the scope has collected.
  Work broadcast(std::span<const Buffer> tensors, int root, const Options& options = {});
  Work all_reduce(std::span<const Buffer> tensors, ReduceOp op, const Options& options = {});
  Work all_reduce(std::span<const ConstBuffer> in, std::span<const Buffer> out, ReduceOp op,
                  const Options& options = {});
  Work all_gather(std::span<const ConstBuffer> in, std::span<const Buffer> out, const Options& options = {});
  Work reduce_scatter(std::span<const ConstBuffer> in, std::span<const Buffer> out, ReduceOp op,
                      const Options& options = {});

  // New comms. All ranks of this comm call these together, and wait for each other. A new comm costs an exchange among
  // its ranks, and each backend connects it: gloo makes a connection to every rank (up to 10 ms each), mpi and nccl
  // make two communicators, shm maps a segment of some MiB. So make comms once, not in every step.
  /// Ranks of one color form a comm, ordered by (key, rank); a negative color gets an empty Comm.
  Comm split(int color, int key = 0, const CommOptions& options = {});
  /// The listed ranks, in that order; every other rank gets an empty Comm.
  Comm subset(std::span<const int> ranks, const CommOptions& options = {});
  Comm subset(std::initializer_list<int> ranks, const CommOptions& options = {}) {
    return subset(std::span(ranks.begin(), ranks.size()), options);
  }
  /// The same ranks with their own sequence of operations: collectives of the two need no common order (over nccl they
  /// do). It costs as much as any new comm.
  Comm dup(const CommOptions& options = {});

  /// False for the Comm that a rank outside a split or subset receives.
  explicit operator bool() const noexcept { return state_ != nullptr; }

  /// Fails every pending and later operation of this comm, on all its ranks. One rank calls it.
  void abort();

  /// An empty Comm, which has no ranks.
  Comm() = default;

 private:
  friend class Context;
  friend class Fuse;
  explicit Comm(std::shared_ptr<core::CommState> state) : state_(std::move(state)) {}
  core::CommState& state() const;
  std::shared_ptr<core::CommState> state_;
};

}  // namespace medley
