// A ring of bytes from one rank to another, carrying frames. One writer, one reader, nothing else.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>

#include "backends/shm/segment_view.hpp"

namespace medley::shm {

enum class FrameKind : std::uint32_t {
  eager,      ///< a whole message follows
  rts,        ///< a message waits in the sender's memory
  cts,        ///< the receiver is ready; send the data as frames (no direct reads)
  data,       ///< a part of an accepted message follows
  fin,        ///< the receiver has read an offered message
};

struct Frame {
  FrameKind kind;
  std::int32_t tag;
  std::uint64_t id;        ///< of an offered message, counted by its sender
  std::uint64_t bytes;     ///< of the whole message (eager, rts) or of this part (data)
  std::uint64_t where;     ///< its address (rts) or the part's offset (data)
};

class Pipe {
 public:
  Pipe(const SegmentView& view, int from, int to)
      : ends_(view.pipe(from, to)), ring_(view.pipe_ring(from, to)), size_(view.geometry().pipe_bytes) {}

  /// The most payload that a frame may carry: half the ring, so that two can be under way.
  std::size_t payload_limit() const { return size_ / 2 - sizeof(Frame); }

  bool write(const Frame& frame, const void* payload, std::size_t bytes) {
    const std::uint64_t at = ends_.written.value.load(std::memory_order_relaxed);   // relaxed: written by this thread
    const std::size_t length = padded(sizeof frame + bytes);
    // Pairs with the release store in pop(): the reader has copied what is overwritten here.
    if (size_ - (at - ends_.read.value.load(std::memory_order_acquire)) < length) return false;
    put(at, &frame, sizeof frame);
    put(at + sizeof frame, payload, bytes);
    ends_.written.value.store(at + length, std::memory_order_release);   // pairs with the acquire load in front()
    return true;
  }

  /// How much payload a frame could carry right now.
  std::size_t free_bytes() const {
    // relaxed: written by this thread. The other pairs with the release store in pop().
    const std::uint64_t used = ends_.written.value.load(std::memory_order_relaxed) -
                               ends_.read.value.load(std::memory_order_acquire);
    const std::size_t left = size_ - static_cast<std::size_t>(used);
    return left > sizeof(Frame) + 32 ? std::min(left - sizeof(Frame) - 32, payload_limit()) : 0;
  }

  std::optional<Frame> front() const {
    const std::uint64_t at = ends_.read.value.load(std::memory_order_relaxed);   // relaxed: written by this thread
    // Pairs with the release store in write(): the whole frame is there.
    if (ends_.written.value.load(std::memory_order_acquire) == at) return std::nullopt;
    Frame frame;
    get(at, &frame, sizeof frame);
    return frame;
  }

  /// Takes the front frame off, its payload into `to`.
  void pop(const Frame& frame, void* to) {
    const std::uint64_t at = ends_.read.value.load(std::memory_order_relaxed);   // relaxed: written by this thread
    const bool carries = frame.kind == FrameKind::eager || frame.kind == FrameKind::data;
    const std::size_t bytes = carries ? static_cast<std::size_t>(frame.bytes) : 0;
    if (to && bytes > 0) get(at + sizeof frame, to, bytes);
    // Pairs with the acquire loads in write() and free_bytes().
    ends_.read.value.store(at + padded(sizeof frame + bytes), std::memory_order_release);
  }

 private:
  static std::size_t padded(std::size_t bytes) { return (bytes + 31) / 32 * 32; }
  void put(std::uint64_t at, const void* data, std::size_t bytes) {
    if (bytes == 0) return;
    const std::size_t begin = at % size_, first = std::min(bytes, size_ - begin);
    std::memcpy(ring_ + begin, data, first);
    std::memcpy(ring_, static_cast<const std::byte*>(data) + first, bytes - first);
  }
  void get(std::uint64_t at, void* data, std::size_t bytes) const {
    const std::size_t begin = at % size_, first = std::min(bytes, size_ - begin);
    std::memcpy(data, ring_ + begin, first);
    std::memcpy(static_cast<std::byte*>(data) + first, ring_, bytes - first);
  }

  PipeEnds& ends_;
  std::byte* ring_;
  std::size_t size_;
};

}  // namespace medley::shm
