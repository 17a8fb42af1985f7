// The shared segment of one comm, as a typed view: who writes which cache line, and where data is staged. Every word
// has a single writer, the rank whose area contains it; pipes have one writer and one reader.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace medley::shm {

/// Exchanges rotate through this many lines and staging slots, so that none needs a closing barrier: a rank reuses
/// a slot only after all peers have arrived at a later exchange. Four lets a broadcast's root run three ahead.
inline constexpr std::uint32_t depth = 4;

/// What fits beside the flag in its own cache line.
inline constexpr std::size_t inline_bytes = 56;

/// Up to here an exchange of equal parts runs in two steps that never suspend: a coroutine frame would cost a quarter
/// of its time.
inline constexpr std::size_t brief_bytes = 4096;

/// A rank's arrival at an exchange, with its payload or a description of where the payload is.
struct alignas(64) Line {
  /// Stored with release by Exchanger::arrive(), after the payload; pairs with the acquire loads in arrived() and
  /// can_begin(). It also ends this rank's reads of the previous exchange: a peer that sees it may reuse that
  /// exchange's slot.
  std::atomic<std::uint64_t> word;
  std::byte payload[inline_bytes];
};

struct alignas(64) Counter {
  std::atomic<std::uint64_t> value;
};

/// What one rank gives to one peer in a v-collective: an offset into the staging slot, or an address.
struct TableEntry {
  std::uint64_t where;
  std::uint64_t bytes;
};

inline constexpr std::size_t counters_per_rank = 3;

/// The position in a line's payload where the giver of a staged or streamed exchange counts what it has laid out; its
/// descriptor precedes it.
inline constexpr std::size_t laid_offset = inline_bytes - sizeof(std::uint64_t);

enum class FrameKind : std::uint32_t {
  eager,  ///< a whole message
  rts,    ///< ready to send: the message is in the sender's memory
  cts,    ///< clear to send: the receiver wants the data as frames (no direct reads)
  data,   ///< a part of a message that was cleared
  fin,    ///< finished: the receiver has read the message
};

/// Message fields of all frames but eager ones.
struct LongMessage {
  std::uint64_t id;     ///< counted by its sender
  std::uint64_t bytes;  ///< of the whole message
  std::uint64_t where;  ///< its address (rts) or the part's offset (data)
};

inline constexpr std::size_t cell_bytes = 48;

/// A frame from one rank to another (pipe.hpp).
struct alignas(64) Cell {
  /// Which round of the ring wrote it. Stored with release by Pipe::publish(), after all else; pairs with the
  /// acquire load in Pipe::front().
  std::atomic<std::uint32_t> stamp;
  FrameKind kind;
  std::int32_t tag;
  std::uint32_t payload;       ///< bytes behind the header: an eager message's are in `data` if they fit, others
                               ///< in the ring of bytes
  std::byte data[cell_bytes];  ///< of an eager frame; of the others a LongMessage
};
static_assert(sizeof(Cell) == 64);

/// One direction between two ranks: what its reader has taken off, of cells and of the ring of bytes. Stored
/// with release by Pipe::pop(), after it has copied; pairs with the acquire loads in Pipe::look_at_reader().
struct alignas(128) PipeReads {
  std::atomic<std::uint64_t> cells, bytes;
};

struct alignas(64) Header {
  std::atomic<std::uint32_t> attached;
  /// 1 + the rank that aborted; stored with release by ShmLane::abort(), pairs with the acquire loads in SegmentView.
  std::atomic<std::uint32_t> aborted;
  // Why, complete before `aborted` is set.
  std::uint32_t kind;            ///< an ErrorKind
  std::uint32_t ranks_at_fault;  ///< how many of `at_fault` are set
  std::int32_t at_fault[8];
  char reason[256];
};

/// In Header::aborted while the reason is being written.
inline constexpr std::uint32_t abort_being_written = 1u << 31;

/// Sizes and offsets; equal on all ranks because they depend on the number of ranks alone.
struct Geometry {
  explicit Geometry(int ranks);
  int ranks;
  std::size_t slot_bytes;              ///< staging per exchange and rank
  std::size_t pipe_cells, pipe_bytes;  ///< cells and ring of bytes of an ordered pair; powers of two
  std::size_t area_bytes;              ///< of one rank, staging included
  std::size_t table_offset, staging_offset, pipes_offset;
  std::size_t total;
  std::size_t pipe_stride() const { return sizeof(PipeReads) + pipe_cells * sizeof(Cell) + pipe_bytes; }
  /// The pipes from one rank to all.
  std::size_t pipe_row_bytes() const { return static_cast<std::size_t>(ranks) * pipe_stride(); }
  /// The part that every comm touches at once: header, lines, counters and tables precede the first staging slot.
  std::size_t control_bytes() const { return staging_offset; }
};

class SegmentView {
 public:
  SegmentView(std::byte* base, const Geometry& geometry) : base_(base), geometry_(geometry) {}
  const Geometry& geometry() const { return geometry_; }
  // Pairs with ShmLane::abort()
  bool aborted() const { return header().aborted.load(std::memory_order_acquire) != 0; }
  /// Throws the error with which a rank aborted the comm, if one did.
  void throw_if_aborted() const;
  Header& header() const { return *reinterpret_cast<Header*>(base_); }
  Line& line(int rank, std::uint32_t sequence) const { return reinterpret_cast<Line*>(area(rank))[sequence % depth]; }
  /// The last exchange in which this rank has finished its direct reads of its peers' memory. Counted in 64 bits: it
  /// may be any number of exchanges old, where sequences that wrap would seem to be ahead. The release store in
  /// Exchanger::run() comes after those reads; pairs with the acquire load in Exchanger::finished(), after which the
  /// giver's caller may reuse its memory.
  Counter& finished(int rank) const { return counters(rank)[0]; }
  /// What this rank has laid out of a staged exchange (the offset of the next byte in its slot) or a streamed one
  /// (chunks). It has the lifetime of the line: reset before the flag, and not written again before all peers have left
  /// the exchange. The release stores in Exchanger::lay_out() and Streamer::lay() pair with the acquire loads in
  /// Exchanger::laid() and Streamer::available().
  std::atomic<std::uint64_t>& laid(int rank, std::uint32_t sequence) const {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(line(rank, sequence).payload + laid_offset);
  }
  /// Not zero once this rank has destroyed its side of the comm, in order: it has delivered everything and will not
  /// call again. The release store in ~ShmLane() pairs with the acquire loads in ShmLane::check() and awaits(): a rank
  /// that sees it sees all earlier flags and frames.
  Counter& left(int rank) const { return counters(rank)[1]; }
  /// Not zero while this rank finds its peers cache-local (cache_distance.hpp). relaxed: a hint, which nothing else
  /// depends on.
  Counter& cache_local(int rank) const { return counters(rank)[2]; }
  /// How many of `giver`'s chunks this rank has consumed, in the same form. The release store in Streamer::took() pairs
  /// with the acquire load in Streamer::reader_done(), after which the giver reuses that space.
  std::atomic<std::uint64_t>& taken(int rank, int giver) const {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(counters(rank) + counters_per_rank)[giver];
  }
  TableEntry* table(int rank, std::uint32_t sequence) const {
    auto* tables = reinterpret_cast<TableEntry*>(area(rank) + geometry_.table_offset);
    return tables + (sequence % depth) * static_cast<std::size_t>(geometry_.ranks);
  }
  std::byte* staging(int rank, std::uint32_t sequence) const {
    return all_staging(rank) + (sequence % depth) * geometry_.slot_bytes;
  }
  /// All slots as one part, for streamed exchanges.
  std::byte* all_staging(int rank) const {
    return base_ + geometry_.staging_offset + static_cast<std::size_t>(rank) * geometry_.slot_bytes * depth;
  }
  PipeReads& pipe(int from, int to) const { return *reinterpret_cast<PipeReads*>(pipe_base(from, to)); }
  Cell* pipe_cells(int from, int to) const { return reinterpret_cast<Cell*>(pipe_base(from, to) + sizeof(PipeReads)); }
  std::byte* pipe_ring(int from, int to) const {
    return pipe_base(from, to) + sizeof(PipeReads) + geometry_.pipe_cells * sizeof(Cell);
  }

 private:
  std::byte* area(int rank) const {
    return base_ + sizeof(Header) + static_cast<std::size_t>(rank) * geometry_.area_bytes;
  }
  Counter* counters(int rank) const { return reinterpret_cast<Counter*>(area(rank) + depth * sizeof(Line)); }
  std::byte* pipe_base(int from, int to) const {
    const auto index =
        static_cast<std::size_t>(from) * static_cast<std::size_t>(geometry_.ranks) + static_cast<std::size_t>(to);
    return base_ + geometry_.pipes_offset + index * geometry_.pipe_stride();
  }
  std::byte* base_;
  Geometry geometry_;
};

}  // namespace medley::shm
