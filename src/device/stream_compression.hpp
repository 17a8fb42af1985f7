// One compressed collective of a stream-ordered lane: kernels in the lane's own stream, and the library's collectives
// of bytes between them, each ordered behind the other by events. The host launches everything when it starts; nothing
// here waits for the device.
#pragma once

#include <medley/sdk/device.hpp>
#include <medley/sdk/task.hpp>
#include <memory>
#include <vector>

#include "algorithms/parts.hpp"
#include "algorithms/running_transfers.hpp"
#include "compress/codec.hpp"
#include "device/stream_lane.hpp"

namespace medley::core {

class StreamCompression final : public Transfer {
 public:
  StreamCompression(StreamLane& lane, const Call& call);
  Poll poll() override;
  std::vector<int> awaited() const override {
    return running_.empty() ? std::vector<int>{} : running_.list().back()->awaited();
  }
  /// Whether the last kernel is in the stream.
  bool launched() override { return done_ != nullptr; }
  bool order(void* stream) override;
  void release() noexcept override;
  /// The phases under way own this transfer and its scratch until the library no longer uses them.
  void abandon(std::shared_ptr<const void> memory) noexcept override;

 private:
  using Parts = algorithms::Parts;
  friend struct std::default_delete<StreamCompression>;
  ~StreamCompression() override;
  Task run();
  Task reduce_parts(bool to_all);
  Task gather_parts();
  Task exchange_parts();

  /// A phase of the library: bytes, behind the kernels so far. Later kernels come behind it.
  Task over_library(Call part);
  /// Encodes what every other rank gets and exchanges the frames. `expected`: the elements that rank r sends.
  Task exchange(Parts sent, const std::vector<std::int64_t>& expected);
  void wait_for_dependencies();
  std::byte* scratch(std::size_t bytes);
  std::size_t frame_bytes(std::int64_t count) const;
  /// The offset of the frame of each number of elements, all aligned; none for 0 elements. The last entry is the end.
  std::vector<std::int64_t> offsets_of(const std::vector<std::int64_t>& counts) const;
  DeviceFrame frame(std::byte* chunks, std::int64_t count) const;
  float* residual(std::int64_t at);
  float* result_residual();
  std::shared_ptr<float> zeros(std::int64_t count);

  std::size_t bytes(std::int64_t count) const { return static_cast<std::size_t>(count) * size_of(call_.dtype); }
  const std::byte* in(std::int64_t at) const { return static_cast<const std::byte*>(call_.in) + bytes(at); }
  std::byte* out(std::int64_t at) const { return static_cast<std::byte*>(call_.out) + bytes(at); }
  Device& device() const { return *device_; }

  StreamLane& lane_;
  std::shared_ptr<Device> device_;
  void* stream_;
  Call call_;
  int rank_, ranks_;
  const compress::Codec& codec_;
  BlockCodec kernel_;
  std::vector<void*> scratch_, events_;
  std::vector<std::int64_t> sent_counts_, sent_offsets_, got_counts_, got_offsets_;  ///< in bytes, of the exchange
  /// The frames of the other ranks
  std::byte* got_ = nullptr;
  Dependencies dependencies_;
  algorithms::RunningTransfers running_;
  bool moved_ = false;
  void* done_ = nullptr;                ///< the event behind its last kernel
  std::shared_ptr<const void> memory_;  ///< what the call points to, for an abandoned transfer
  Task task_;
};

}  // namespace medley::core
