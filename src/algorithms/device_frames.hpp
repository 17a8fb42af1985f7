// Compressed collectives on CUDA memory: kernels encode tensors into frames in pinned memory and decode them from
// there, so that only compressed bytes cross the bus. One per staged lane, shared with what outlives it. Under the
// engine's lock; nothing here waits.
#pragma once

#include <cstdint>
#include <medley/sdk/device.hpp>
#include <medley/sdk/task.hpp>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "compress/codec.hpp"

namespace medley::algorithms {

class PinnedBlock;

class MEDLEY_API DeviceFrames : public std::enable_shared_from_this<DeviceFrames> {
 public:
  explicit DeviceFrames(std::shared_ptr<Device> device) : device_(std::move(device)), stream_(device_->make_stream()) {}
  DeviceFrames(const DeviceFrames&) = delete;
  DeviceFrames& operator=(const DeviceFrames&) = delete;
  ~DeviceFrames();

  /// Whether the device has kernels for this compressed call. If not, the tensor is staged as it is.
  static bool has_kernels(const Device& device, const Call& call);

  void encode(const compress::Codec& codec, DType dtype, std::int64_t count, std::byte* frame, const void* elements,
              float* residual);
  void decode(const compress::Codec& codec, DType dtype, std::int64_t count, const std::byte* frame, void* elements);
  /// `first.chunks` and `chunks` are filled in from the frames.
  void combine(const compress::Codec& codec, DeviceReduction reduction, const std::byte* first_frame,
               std::byte* result_frame);
  void copy(void* to, const void* from, std::size_t bytes);
  bool completed(void* event) { return device_->completed(event); }

  /// Pinned memory whose frame begins where its chunks are aligned for the kernels.
  PinnedBlock take(std::size_t bytes);
  /// f32 zeros in device memory, for error feedback.
  std::shared_ptr<float> zeros(std::int64_t count);

  /// Everything enqueued so far, as an event.
  class Mark {
   public:
    explicit Mark(DeviceFrames& frames)
        : frames_(frames.shared_from_this()),
          launches_(frames.launches_),
          event_(frames.device_->record(frames.stream_)) {}
    Mark(Mark&& other) noexcept
        : frames_(std::move(other.frames_)), launches_(other.launches_), event_(std::exchange(other.event_, nullptr)) {}
    Mark& operator=(Mark&&) = delete;
    ~Mark() {
      if (event_) frames_->device_->release_event(event_);
    }
    void* event() const { return event_; }
    bool reached() const {
      if (!frames_->device_->completed(event_)) return false;
      frames_->done_ = std::max(frames_->done_, launches_);
      return true;
    }

   private:
    std::shared_ptr<DeviceFrames> frames_;
    std::uint64_t launches_;
    void* event_;
  };
  auto done() {
    return until([mark = Mark(*this)] { return mark.reached(); });
  }
  void make_wait(void* stream, void* event) { device_->wait(stream, event); }
  /// After an abort: whether the device no longer touches the tensors. True also where it is broken.
  bool idle() noexcept;

 private:
  friend class PinnedBlock;
  /// A block that kernels may still use.
  struct Retired {
    void* event;
    std::byte* memory;
    std::size_t bytes;
  };
  void give_back(std::byte* memory, std::size_t bytes) noexcept;
  bool reclaim(const Retired& block) noexcept;

  std::shared_ptr<Device> device_;
  void* stream_;  ///< of kernels and copies of this lane
  /// Counted, so that a block is given back at once where nothing is running
  std::uint64_t launches_ = 0, done_ = 0;
  std::vector<Retired> retired_;
};

/// Returns to the pool when no kernel can use it any more.
class PinnedBlock {
 public:
  PinnedBlock() = default;
  PinnedBlock(std::shared_ptr<DeviceFrames> owner, std::byte* memory, std::size_t bytes)
      : owner_(std::move(owner)), memory_(memory), bytes_(bytes) {}
  PinnedBlock(PinnedBlock&& other) noexcept
      : owner_(std::move(other.owner_)), memory_(std::exchange(other.memory_, nullptr)), bytes_(other.bytes_) {}
  PinnedBlock& operator=(PinnedBlock&& other) noexcept {
    std::swap(owner_, other.owner_);
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~PinnedBlock() {
    if (memory_) owner_->give_back(memory_, bytes_);
  }
  std::byte* frame() const;  ///< null if it is empty

 private:
  std::shared_ptr<DeviceFrames> owner_;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

/// The kernels of a codec, where devices have them.
MEDLEY_API std::optional<BlockCodec> block_codec(compress::Kind kind);

/// The distance between frames of this size in one block.
MEDLEY_API std::size_t frame_stride(std::size_t bytes);

/// What a collective on CUDA memory has besides its call.
struct DeviceWork {
  std::shared_ptr<DeviceFrames> frames{};
  void* last = nullptr;  ///< the event that ends it, once nothing but the device's work is left
};

}  // namespace medley::algorithms
