// Frames from one rank to another, in order: a single-producer, single-consumer queue.
//
// A frame is a cell: one cache line with a stamp, a header and up to 48 bytes, so that a small message costs its reader
// one cache miss. A longer payload goes through a ring of bytes beside the cells, in the same order. Each side counts
// in its own memory what it has written or read; the reader's counts are shared, and the writer reads them only when it
// runs out of space.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <medley/sdk/pause.hpp>

#include "backends/shm/copy_few.hpp"
#include "backends/shm/segment_view.hpp"

namespace medley::shm {

class Pipe {
 public:
  Pipe(const SegmentView& view, int from, int to)
      : reads_(view.pipe(from, to)),
        cells_(view.pipe_cells(from, to)),
        ring_(view.pipe_ring(from, to)),
        cells_size_(view.geometry().pipe_cells),
        lap_shift_(std::countr_zero(cells_size_)),
        ring_size_(view.geometry().pipe_bytes) {}

  /// The largest payload of a frame: half the ring, so that two can be in flight.
  std::size_t payload_limit() const { return ring_size_ / 2; }

  // Called by the writer. False if there is no space now.
  /// A whole message.
  bool write_eager(std::int32_t tag, const void* data, std::size_t bytes) {
    const bool in_cell = bytes <= cell_bytes;
    if (!has_space(in_cell ? 0 : bytes)) return false;
    Cell& cell = next_cell();
    cell.kind = FrameKind::eager;
    cell.tag = tag;
    cell.payload = static_cast<std::uint32_t>(bytes);
    if (!in_cell) {
      put(data, bytes);
    } else {
      copy_few(cell.data, data, bytes);
    }
    publish(cell);
    return true;
  }
  /// Any other frame; a data frame carries a part of a message.
  bool write(FrameKind kind, std::int32_t tag, const LongMessage& about, const void* data = nullptr,
             std::size_t bytes = 0) {
    if (!has_space(bytes)) return false;
    Cell& cell = next_cell();
    cell.kind = kind;
    cell.tag = tag;
    cell.payload = static_cast<std::uint32_t>(bytes);
    std::memcpy(cell.data, &about, sizeof about);
    if (bytes > 0) put(data, bytes);
    publish(cell);
    return true;
  }
  /// How much payload a frame could carry right now.
  std::size_t space() {
    look_at_reader();
    if (written_ - seen_read_ == cells_size_) return 0;
    return std::min(ring_size_ - static_cast<std::size_t>(bytes_written_ - seen_bytes_read_), payload_limit());
  }

  // Called by the reader.
  /// The first frame, or null. It stays where it is until pop().
  const Cell* front() const {
    const Cell& cell = cells_[read_ & (cells_size_ - 1)];
    // Pairs with the release store in publish(): the whole frame is there.
    if (cell.stamp.load(std::memory_order_acquire) != stamp_of(read_)) return nullptr;
    prefetch(read_ahead);
    return &cell;
  }
  /// After the first front() that found a frame: fetches those behind it, so that the lines of several travel at once.
  void prefetch_next() const {
    for (std::uint64_t ahead = 1; ahead < read_ahead; ++ahead) prefetch(ahead);
  }
  /// Takes the first frame off, its payload into `to`.
  void pop(const Cell& cell, void* to) {
    const std::size_t bytes = cell.payload;
    if (bytes > 0) {
      const bool in_cell = cell.kind == FrameKind::eager && bytes <= cell_bytes;
      if (in_cell && to) copy_few(to, cell.data, bytes);
      if (!in_cell) {
        if (to) get(to, bytes);
        bytes_read_ += padded(bytes);
        reads_.bytes.store(bytes_read_,
                           std::memory_order_release);  // pairs with look_at_reader(): the bytes are copied
      }
    }
    ++read_;
    publish_reads();
  }
  /// Takes the first frame off, which has all of its payload in its cell. The writer hears of every eighth;
  /// publish_reads() after the last.
  void pop_cell() {
    if (++read_ % 8 == 0) publish_reads();
  }
  /// The writer may use the cells of all frames that were taken off again.
  // Pairs with look_at_reader(): they are no longer used
  void publish_reads() { reads_.cells.store(read_, std::memory_order_release); }

 private:
  static std::size_t padded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }
  /// Differs from the cell's stamp in the previous round, and from the zero of a fresh segment.
  std::uint32_t stamp_of(std::uint64_t number) const { return static_cast<std::uint32_t>(number >> lap_shift_) + 1; }

  bool has_space(std::size_t bytes) {
    if (fits(bytes)) [[likely]]
      return true;
    look_at_reader();
    return fits(bytes);
  }
  bool fits(std::size_t bytes) const {
    return written_ - seen_read_ < cells_size_ &&
           ring_size_ - static_cast<std::size_t>(bytes_written_ - seen_bytes_read_) >= padded(bytes);
  }
  void look_at_reader() {
    // Each pairs with a release store in pop(): the reader has copied what will be overwritten.
    seen_read_ = reads_.cells.load(std::memory_order_acquire);
    seen_bytes_read_ = reads_.bytes.load(std::memory_order_acquire);
  }
  void prefetch(std::uint64_t ahead) const { __builtin_prefetch(&cells_[(read_ + ahead) & (cells_size_ - 1)]); }
  Cell& next_cell() { return cells_[written_ & (cells_size_ - 1)]; }
  void publish(Cell& cell) {
    cell.stamp.store(stamp_of(written_),
                     std::memory_order_release);  // pairs with the acquire load in front()
    ++written_;
    // The reader had that line last. Without this, the stores of the next frames would wait for it one after the other.
    prefetch_to_write(&cells_[(written_ + write_ahead) & (cells_size_ - 1)]);
  }
  void put(const void* data, std::size_t bytes) {
    const std::size_t begin = bytes_written_ & (ring_size_ - 1), first = std::min(bytes, ring_size_ - begin);
    std::memcpy(ring_ + begin, data, first);
    if (first < bytes) std::memcpy(ring_, static_cast<const std::byte*>(data) + first, bytes - first);
    bytes_written_ += padded(bytes);
  }
  void get(void* data, std::size_t bytes) const {
    const std::size_t begin = bytes_read_ & (ring_size_ - 1), first = std::min(bytes, ring_size_ - begin);
    std::memcpy(data, ring_ + begin, first);
    if (first < bytes) std::memcpy(static_cast<std::byte*>(data) + first, ring_, bytes - first);
  }

  // How many cells ahead each side fetches. On two far cores (a line takes 0.15 µs) windows of 8 messages took 1.50 µs
  // with 1 and 1, 1.38 with 3 and 1, 1.47 with 3 and 2, 1.24 with 3 and 3, 1.38 with 3 and 5; windows of 64 8.9, 8.9,
  // 8.1, 8.1 and 13. Lines further ahead are taken away from the other side, which is not done with them: on 16 cores
  // of a Xeon, windows of 64 took 21.0 µs with 1 and 1, 21.4 with 3 and 1, 21.5 with 3 and 2, but 25.4 with 3 and 3,
  // windows of 8 3.0 to 3.1 with each.
  static constexpr std::uint64_t read_ahead = 3, write_ahead = 2;

  PipeReads& reads_;
  Cell* cells_;
  std::byte* ring_;
  std::size_t cells_size_;  ///< a power of two, as is the ring's
  int lap_shift_;
  std::size_t ring_size_;
  std::uint64_t written_ = 0, bytes_written_ = 0;      ///< the writer's
  std::uint64_t seen_read_ = 0, seen_bytes_read_ = 0;  ///< the writer's last look at the reader's
  std::uint64_t read_ = 0, bytes_read_ = 0;            ///< the reader's
};

}  // namespace medley::shm
