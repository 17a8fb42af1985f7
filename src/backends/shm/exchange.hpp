// The mechanism under all shm collectives: every rank lays out what it gives and takes what the others gave, by copying
// each part or by reducing over all. Each collective (collective.cpp) is one or two exchanges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <medley/backend.hpp>
#include <medley/sdk/reduce.hpp>
#include <medley/sdk/task.hpp>
#include <vector>

#include "backends/shm/cache_distance.hpp"
#include "backends/shm/parts.hpp"
#include "backends/shm/path_choice.hpp"
#include "backends/shm/segment_view.hpp"

namespace medley::shm {

class HostPeers;

/// How a rank hands over what it gives. Each rank chooses for itself; the readers find the choice in its flag.
enum class Mode : std::uint8_t {
  in_line,   ///< in the flag's own cache line, or, up to brief_bytes, in the slot beside it
  staged,    ///< copied into this exchange's staging slot
  direct,    ///< read from the giver's memory by process_vm_readv
  streamed,  ///< through all staging slots, chunk after chunk
};

/// What every rank of an exchange must agree on; compared at every arrival.
struct Identity {
  Op op{};
  DType dtype{};
  ReduceOp reduce{};
  int root = 0;
  std::int64_t count = 0;  ///< 0 for forms whose counts may differ
};

struct Exchange {
  Identity identity;
  Parts give;
  Mode mode = Mode::in_line;
  Parts take;                  ///< where each rank's part goes, when copying
  ReduceFn combine = nullptr;  ///< set: reduce over all ranks into `into` instead
  std::byte* into = nullptr;
  const std::byte* own = nullptr;  ///< this rank's own contribution to a reduction
  std::size_t into_bytes = 0;
  std::size_t handed = 0;  ///< what a giver lays out in all, when in line; equal on all ranks
  std::size_t element = 1;
  int divisor = 1;
  std::size_t part_at = 0;    ///< in line: where this rank's part starts in the line of a giver
  bool waits_for_all = true;  ///< false: only for the ranks it takes from (rooted forms)
  /// Every rank meets all others, so all learn the same about their cache distances
  bool all_meet = true;
  bool past_cache = false;  ///< results too large for the cache are written around it
  /// Direct: so many of the next ranks find their parts in their own slots instead; see scatter_out()
  int scattered = 0;
  int timed = -1;  ///< the bucket of PathChoices that this giver times it for; -1: none
  /// The only giver lays out in small steps, after it has arrived, while its readers copy
  bool pipelined = false;

  /// Resets all fields for the call; field by field, see Parts.
  void reset(const Call& call) {
    identity.op = call.op, identity.dtype = call.dtype, identity.reduce = call.reduce, identity.root = call.root;
    identity.count = 0;
    give.set_none();
    take.set_none();
    mode = Mode::in_line;
    combine = nullptr;
    into_bytes = 0;
    handed = 0;
    part_at = 0;
    element = size_of(call.dtype);
    divisor = 1;
    waits_for_all = true;
    all_meet = !rooted(call.op);
    past_cache = false;
    scattered = 0;
    timed = -1;
    pipelined = false;
  }
};

/// Thrown inside the lane; the engine adds comm and sequence number.
[[noreturn]] void throw_mismatch(const Identity& mine, const Identity& theirs, int rank, std::int64_t my_bytes,
                                 std::int64_t their_bytes);

/// Runs the exchanges of one comm, in sequence.
class Exchanger {
 public:
  Exchanger(SegmentView view, int rank, const HostPeers& host_peers, std::vector<int> members);

  /// In-line exchanges in three steps that never suspend or allocate.
  bool can_begin();
  void arrive_in_line(const Exchange& exchange);
  bool take_in_line(const Exchange& exchange);

  /// Any exchange, from beginning to end.
  Task run(Exchange exchange);

  /// Ranks that the running exchange still waits for: to arrive, or to have read what this rank gives.
  std::vector<int> missing() const;

  int rank() const { return rank_; }
  int ranks() const { return view_.geometry().ranks; }
  const SegmentView& view() const { return view_; }
  std::size_t slot_bytes() const { return view_.geometry().slot_bytes; }
  /// How much of each slot of this rank is populated.
  std::size_t ready_bytes() const { return ready_bytes_; }
  void slots_ready(std::size_t bytes) { ready_bytes_ = bytes; }
  /// Whether the readers of this rank find it cache-local, as they last reported.
  bool readers_near() const;
  /// Whether all ranks are cache-local to each other; the same answer on all ranks at the same point of their programs.
  bool all_near() const { return all_near_; }
  /// Whether the ways of large data may be timed against each other: few ranks, each with a core of its own.
  bool may_stream() const { return may_stream_; }
  PathChoices& broadcast_paths() { return broadcast_paths_; }

 private:
  /// Where a giver's data is, when it is not in the flag's line; stored in the line's payload.
  struct Descriptor {
    std::uint64_t address;   ///< of the first part (direct), or its offset in the slot (staged)
    std::uint64_t bytes;     ///< of one part, unless listed
    std::uint32_t chunk;     ///< streamed: of this many bytes for each reader
    std::int32_t scattered;  ///< as in Exchange
    Parts::Kind kind;
    bool probe;        ///< a direct giver has written something into its slot for timing
    bool cache_local;  ///< how this rank measured its peers
  };
  struct Offer {
    std::uint64_t where;  ///< an address in the giver (direct), or an offset in its staging
    std::size_t bytes;
  };

  void next();
  void arrive(const Exchange& exchange);
  void ended(const Exchange& exchange);
  bool arrived(int rank) const;
  std::byte* payload(int rank, std::size_t handed) const {
    return handed <= inline_bytes ? view_.line(rank, sequence_).payload : view_.staging(rank, sequence_);
  }
  Mode mode_of(int rank) const;
  Descriptor descriptor(int rank) const;
  Offer offer(int rank) const;
  void introduce(const Exchange& exchange, std::size_t place);
  void meet(int rank);
  void compare(const Exchange& exchange, int rank) const;
  void expect(const Exchange& exchange, int rank, std::size_t offered, std::size_t wanted) const;
  std::size_t place_in_slot(std::size_t bytes) const;
  std::size_t chunk_bytes(const Exchange& exchange) const;
  void list_parts(const Exchange& exchange, std::size_t place);
  void lay_out(const Exchange& exchange, std::size_t place);
  std::uint64_t laid(int rank) const;
  int scattered_place(int giver) const;
  Task scatter_out(const Exchange& exchange);
  Task await_readers(const Exchange& exchange);
  void note_path(const Exchange& exchange, Deadline since);
  void copy_own(const Exchange& exchange) const;
  void copy(void* to, const void* from, std::size_t bytes, bool past_cache) const;
  void read(void* to, int rank, std::uint64_t where, std::size_t bytes) const;
  bool take_one_in_line(const Exchange& exchange);
  bool finished(int rank) const;
  void wake() const;

  Task take_copies(const Exchange& exchange, bool& took_direct, std::vector<int>& streaming);
  Task reduce_all(const Exchange& exchange, bool& took_direct, std::vector<int>& streaming);
  Task reduce_direct(const Exchange& exchange);
  Task stream(const Exchange& exchange, std::vector<int> sources);

  SegmentView view_;
  int rank_;
  const HostPeers& host_peers_;
  std::vector<int> members_;          ///< per rank: its index in host_peers
  std::vector<int> peers_;            ///< members_ without this rank
  std::vector<const void*> sources_;  ///< scratch for reductions
  std::vector<std::byte> scratch_;
  std::uint32_t sequence_ = 0;                ///< of the running exchange, or the last one
  std::uint64_t count_ = 0;                   ///< the same without wrapping
  int laying_ = -1;                           ///< a rank that has arrived and whose slot this one awaits more of
  std::vector<int> readers_;                  ///< of this rank's memory, once the running exchange waits only for them
  const class Streamer* streamer_ = nullptr;  ///< of the running exchange
  CacheDistance distance_;
  PathChoices broadcast_paths_;
  Deadline all_here_{};  ///< when all readers of a timed exchange had arrived
  bool may_stream_;      ///< more than three ranks, or oversubscribed ranks, were not measured
  /// Every rank that the running exchange has met, this one included, reports cache-local
  bool met_cache_local_ = false;
  bool all_near_ = false;
  std::uint32_t directly_given_ = 0;
  std::size_t ready_bytes_ = 0;  ///< populated bytes of each slot of this rank
  std::uint32_t checked_ = 0;    ///< up to this exchange every peer has arrived and called the same

  friend class Streamer;
};

/// Fields of a flag word.
inline std::uint32_t sequence_of(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); }

/// Whether a rank last seen at `sequence` has reached `wanted`. Sequences wrap, and no rank is ever `depth` ahead of
/// another: a value that seems further ahead is a word not written for up to 2^32 exchanges.
inline bool at_least(std::uint32_t sequence, std::uint32_t wanted) { return sequence - wanted < 2 * depth; }

/// Suspends for one poll, so that long work lets other operations progress.
inline auto yield_once() {
  return until([first = true]() mutable { return !std::exchange(first, false); });
}

}  // namespace medley::shm
