// Compressed operations: what a rank sends is encoded into frames (compress/frame.hpp), which travel as messages like those of every
// filled-in collective. A compressed operation is a route whose algorithm is "+CODEC".
#pragma once

#include <medley/error_feedback.hpp>
#include <string>
#include <vector>

#include "algorithms/job.hpp"
#include "compress/frame.hpp"

namespace medley::algorithms {

/// Why this call cannot be compressed by the codec of its algorithm; empty if it can. Equal on all ranks of a collective, but for the
/// feedback, which each rank passes itself.
MEDLEY_API std::string why_not_compressed(const Call& call, std::string_view algorithm);

/// The one place that touches the residuals; under the engine's lock.
class FeedbackAccess {
 public:
  /// Sizes them at their first use. Throws Error(invalid) where they are those of another tensor.
  static void prepare(const Call& call, int rank, int ranks);
  /// From element `at` on, on the device for a job there; null without feedback. Zeros at first.
  static float* residual(const Job& job, std::int64_t at);
  static float* result(const Job& job, std::int64_t at);

 private:
  static float* values(const Job& job, std::int64_t count, std::vector<float>& on_host, std::shared_ptr<float>& on_device);
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
  FrameMemory memory{};          ///< empty where it is one of several in a block
  std::byte* data = nullptr;
  std::uint64_t bytes = 0;
  Messages::Ticket ticket = 0;   ///< of its length, or of itself for codecs of fixed size
};

/// The frames of one compressed collective, in any number of rounds.
class FrameExchange {
 public:
  explicit FrameExchange(Job& job) : job_(job), codec_(compress::codec_of(job.call.algorithm)) {}
  const compress::Codec& codec() const { return codec_; }

  /// Encodes `count` elements, a few chunks per poll or by the device. With a residual: error feedback.
  Task encode(const std::byte* elements, std::int64_t count, float* residual, OutgoingFrame& frame);
  /// The frame stays in place until the collective ends.
  void send(const OutgoingFrame& frame, int to);
  /// Expects a frame; nothing is sent for 0 elements. Frames of one rank arrive in the order in which they are expected.
  void expect(IncomingFrame& frame, int from, std::int64_t count);
  /// Expects a frame of as many elements from every other rank, in rank order.
  void expect_from_all(std::vector<IncomingFrame>& frames, std::int64_t count);
  /// Until every expected frame has arrived and everything is sent.
  Task arrive(std::vector<IncomingFrame>& frames);
  /// Checks a frame that has arrived. Its errors name the sender.
  compress::FrameReader reader(const IncomingFrame& frame) const;
  compress::FrameReader reader(const OutgoingFrame& frame, std::int64_t count) const {
    return {codec_, job_.call.dtype, count, frame.span()};
  }
  /// Decodes a whole frame: a few chunks per poll, or by the device, which settle() waits for.
  Task decode(const compress::FrameReader& reader, std::byte* elements);
  /// Copies elements that stay on this rank.
  void copy(std::byte* to, const std::byte* from, std::size_t bytes);
  /// The last step of every collective: until the device has done its work.
  Task settle();
  /// Combines this rank's elements with the frames of all others on the device: into elements, or into the frame of the result.
  void combine_on_device(const std::vector<IncomingFrame>& arrived, const std::byte* own, std::byte* elements, OutgoingFrame* result);
  /// Lets other operations progress between two chunks.
  static auto yield() {
    return until([resumed = false]() mutable { return std::exchange(resumed, true); });
  }

 private:
  Job& job_;
  const compress::Codec& codec_;
  FrameMemory from_all_{};   ///< of expect_from_all() on a device, whose kernels expect frames at equal distances
};

/// Starts a compressed send or receive on a lane.
Transfer* start_compressed_message(Lane& lane, const Call& call);

// The compressed collectives.
Task compressed_all_reduce(Job& job);
Task compressed_reduce(Job& job);
Task compressed_reduce_scatter(Job& job);   ///< also reduce_scatterv
Task compressed_all_gather(Job& job);       ///< also all_gatherv
Task compressed_all_to_all(Job& job);       ///< also all_to_allv
Task compressed_gather(Job& job);           ///< also gatherv
Task compressed_scatter(Job& job);          ///< also scatterv
Task compressed_broadcast(Job& job);

}  // namespace medley::algorithms
