// Compressed operations: what a rank sends is encoded into frames (compress/frame.hpp), which travel as messages like
// those of every filled-in collective. A compressed operation is a route whose algorithm is "+CODEC".
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <medley/error_feedback.hpp>
#include <string>
#include <vector>

#include "algorithms/job.hpp"
#include "compress/frame.hpp"

namespace medley::algorithms {

/// Why this call cannot be compressed by the codec of its algorithm; empty if it can. Equal on all ranks of a
/// collective, but for the feedback, which each rank passes itself.
MEDLEY_API std::string why_not_compressed(const Call& call, std::string_view algorithm);
/// The same for CUDA memory that the backend carries itself, in streams: what kernels encode and decode.
MEDLEY_API std::string why_not_compressed_in_streams(const Call& call, std::string_view algorithm);
/// Which collectives are compressed there.
constexpr bool compresses_in_streams(Op op) {
  return op == Op::all_reduce || op == Op::reduce_scatter || op == Op::all_gather || op == Op::all_to_all ||
         op == Op::all_to_allv;
}

/// The one place that touches the residuals; under the engine's lock.
class FeedbackAccess {
 public:
  /// Sizes them at their first use. Throws Error(invalid) where they are those of another tensor.
  static void prepare(const Call& call, int rank, int ranks);
  /// From element `at` on, on the device for a job there; null without feedback. Zeros at first.
  static float* residual(const Job& job, std::int64_t at);
  static float* result(const Job& job, std::int64_t at);
  /// The same for a call in streams; `zeros` makes them on the device, in stream order.
  using MakeZeros = std::function<std::shared_ptr<float>(std::int64_t count)>;
  static MEDLEY_API float* residual_on_device(const Call& call, std::int64_t at, const MakeZeros& zeros);
  static MEDLEY_API float* result_on_device(const Call& call, const MakeZeros& zeros);

 private:
  static float* values(const Job& job, std::int64_t count, std::vector<float>& on_host,
                       std::shared_ptr<float>& on_device);
};

/// Memory of a frame: pinned for collectives on CUDA memory.
class FrameMemory {
 public:
  FrameMemory() = default;
  FrameMemory(const Job& job, std::size_t bytes) {
    if (job.device) pinned_ = job.device->frames->take(bytes);
    else scratch_ = Scratch(bytes);
  }
  std::byte* data() const { return pinned_.frame() ? pinned_.frame() : scratch_.data(); }

 private:
  Scratch scratch_{};
  PinnedBlock pinned_{};
};

/// A part of this rank's data, encoded.
struct OutgoingFrame {
  FrameMemory memory{};
  std::uint64_t bytes = 0;
  std::span<std::byte> span() const { return {memory.data(), static_cast<std::size_t>(bytes)}; }
};

/// A frame of another rank.
struct IncomingFrame {
  int from = 0;
  std::int64_t count = 0;
  FrameMemory memory{};  ///< empty where it is one of several in a block
  std::byte* data = nullptr;
  std::uint64_t bytes = 0;
  Messages::Ticket ticket = 0;  ///< of its length, or of itself for codecs of fixed size
};

/// A part as it travels: in segments of whole chunks, each a frame of its own, so that one is encoded while the one
/// before is on its way and those that arrived are decoded. A function of the number of elements alone, so that both
/// ends agree.
struct Segment {
  std::int64_t at = 0, count = 0;
};
class Segments {
 public:
  Segments(std::int64_t count, bool one) : count_(count) {
    const std::int64_t chunks =
        one ? compress::chunks_of(count) : std::max(least_chunks, (compress::chunks_of(count) + most - 1) / most);
    each_ = std::max<std::int64_t>(chunks, 1) * std::int64_t{compress::chunk_values};
  }
  std::int64_t size() const { return (count_ + each_ - 1) / each_; }
  /// Empty beyond the last.
  Segment operator[](std::int64_t index) const {
    const std::int64_t at = std::min(index * each_, count_);
    return {at, std::min(each_, count_ - at)};
  }

 private:
  /// 128 KiB of int8: 1 ms at 1 Gbit/s, ten times what a message costs there
  static constexpr std::int64_t least_chunks = 8;
  /// With these, filling and draining the pipeline takes a sixteenth of the time
  static constexpr std::int64_t most = 16;
  std::int64_t count_, each_;
};

/// The frames of one compressed collective. They travel in rounds: in round k the segments with number k of all parts.
class FrameExchange {
 public:
  explicit FrameExchange(Job& job) : job_(job), codec_(compress::codec_of(job.call.algorithm)) {}
  const compress::Codec& codec() const { return codec_; }

  /// Frames without a fixed size follow their lengths, so a part is one segment there: a second length would arrive
  /// before the first frame.
  Segments segments(std::int64_t count) const { return {count, !codec_.fixed_size()}; }
  /// Of the rank with the most segments.
  std::int64_t rounds(Parts parts) const;
  /// A frame of this rank, kept until the collective ends.
  OutgoingFrame& outgoing() { return sent_.emplace_back(); }

  /// Encodes `count` elements, a few chunks per poll or by the device. With a residual: error feedback.
  Task encode(const std::byte* elements, std::int64_t count, float* residual, OutgoingFrame& frame);
  /// The frame stays in place until the collective ends.
  void send(const OutgoingFrame& frame, int to);
  /// Encodes a segment of every other rank's part of the input and sends it there.
  Task send_round(Parts parts, std::int64_t round);
  /// Expects a frame; nothing is sent for 0 elements. Frames of one rank arrive in the order in which they are
  /// expected.
  void expect(IncomingFrame& frame, int from, std::int64_t count);
  /// Expects a frame of as many elements from every other rank, in rank order.
  void expect_from_all(std::vector<IncomingFrame>& frames, std::int64_t count);
  /// Expects a segment of every other rank's part, in rank order.
  void expect_round(std::vector<IncomingFrame>& frames, Parts parts, std::int64_t round);
  /// Until these frames have arrived.
  Task arrive(std::vector<IncomingFrame>& frames);
  /// Decodes the frames of a round to their places in the output, once they have arrived.
  Task take_round(std::vector<IncomingFrame>& frames, Parts parts, std::int64_t round);
  /// Checks a frame that has arrived. Its errors name the sender.
  compress::FrameReader reader(const IncomingFrame& frame) const;
  compress::FrameReader reader(const OutgoingFrame& frame, std::int64_t count) const {
    return {codec_, job_.call.dtype, count, frame.span()};
  }
  /// Decodes a whole frame: a few chunks per poll, or by the device, which settle() waits for.
  Task decode(const compress::FrameReader& reader, std::byte* elements);
  /// Copies elements that stay on this rank.
  void copy(std::byte* to, const std::byte* from, std::size_t bytes);
  /// The last step of every collective: until everything is sent and the device has done its work.
  Task settle();
  /// Combines this rank's elements with the frames of all others on the device: into elements, or into the frame of the
  /// result, whose residual may be null.
  void combine_on_device(const std::vector<IncomingFrame>& arrived, const std::byte* own, std::byte* elements,
                         OutgoingFrame* result, float* residual);
  /// Lets other operations progress between two chunks.
  static auto yield() {
    return until([resumed = false]() mutable { return std::exchange(resumed, true); });
  }

 private:
  Job& job_;
  const compress::Codec& codec_;
  std::deque<OutgoingFrame> sent_;  ///< never moved: messages point into it
};

/// Starts a compressed send or receive on a lane.
Transfer* start_compressed_message(Lane& lane, const Call& call);

// The compressed collectives.
Task compressed_all_reduce(Job& job);
Task compressed_reduce(Job& job);
Task compressed_reduce_scatter(Job& job);  ///< also reduce_scatterv
Task compressed_all_gather(Job& job);      ///< also all_gatherv
Task compressed_all_to_all(Job& job);      ///< also all_to_allv
Task compressed_gather(Job& job);          ///< also gatherv
Task compressed_scatter(Job& job);         ///< also scatterv
Task compressed_broadcast(Job& job);

}  // namespace medley::algorithms
