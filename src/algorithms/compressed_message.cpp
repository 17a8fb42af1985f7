// A compressed send or receive: one frame as one message with the user's tag, so that it matches like any other.
#include <fmt/format.h>

#include "algorithms/compressed.hpp"

namespace medley::algorithms {
namespace {

class CompressedMessage final : public Transfer {
 public:
  CompressedMessage(Lane& lane, const Call& call) : codec_(compress::codec_of(call.algorithm)), call_(call) {
    Call framed = call;
    framed.dtype = DType::u8;
    framed.algorithm = {};
    if (call.op == Op::send) {
      encode();
      framed.in = frame_.data();
      framed.in_count = static_cast<std::int64_t>(bytes_);
    } else {
      bytes_ = compress::most_frame_bytes(codec_, call.dtype, call.out_count);
      frame_ = Scratch(bytes_);
      framed.out = frame_.data();
      framed.out_count = static_cast<std::int64_t>(bytes_);
    }
    inner_ = lane.start(framed);  // now, so that messages of one peer and tag keep their order
  }
  ~CompressedMessage() override = default;
  bool complete() const { return !inner_; }

  Poll poll() override {
    const Poll seen = inner_->poll();
    if (seen != Poll::complete) return seen;
    source_ = inner_->source();
    const std::int64_t came = inner_->received();
    std::exchange(inner_, nullptr)->release();
    if (call_.op == Op::recv) decode(came < 0 ? bytes_ : std::min(bytes_, static_cast<std::size_t>(came)));
    return Poll::complete;
  }
  std::vector<int> awaited() const override { return inner_ ? inner_->awaited() : std::vector<int>{}; }
  int source() const override { return source_; }
  std::int64_t received() const override { return received_; }
  void release() noexcept override {
    if (inner_) return abandon({});
    delete this;
  }
  /// The message owns the frame, in this object, until its library no longer uses it.
  void abandon(std::shared_ptr<const void> memory) noexcept override {
    if (!inner_) return release();
    memory_ = std::move(memory);
    std::exchange(inner_, nullptr)->abandon(std::shared_ptr<CompressedMessage>(this));
  }

 private:
  void encode() {
    frame_ = Scratch(compress::most_frame_bytes(codec_, call_.dtype, call_.in_count));
    compress::FrameWriter writer(codec_, call_.dtype, call_.in_count, frame_.data());
    const auto* at = static_cast<const std::byte*>(call_.in);
    for (; !writer.complete(); at += compress::chunk_values * size_of(call_.dtype)) writer.add(at);
    bytes_ = writer.finish();
  }
  void decode(std::size_t bytes) try {
    const std::span<const std::byte> frame(frame_.data(), bytes);
    const std::int64_t count = compress::frame_values(frame);
    if (count > call_.out_count) {
      throw Error(ErrorKind::mismatch,
                  fmt::format("a message of {} elements does not fit a receive of {}", count, call_.out_count));
    }
    const compress::FrameReader reader(codec_, call_.dtype, count, frame);
    auto* to = static_cast<std::byte*>(call_.out);
    for (std::int64_t i = 0; i < reader.chunks(); ++i) {
      reader.read(i, to + static_cast<std::size_t>(i) * compress::chunk_values * size_of(call_.dtype));
    }
    received_ = count * static_cast<std::int64_t>(size_of(call_.dtype));
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("from rank {}: {}", source_, error.what()), {.ranks = {source_}});
  }

  const compress::Codec& codec_;
  Call call_;
  Scratch frame_;
  std::size_t bytes_ = 0;
  Transfer* inner_ = nullptr;
  int source_ = -1;
  std::int64_t received_ = -1;
  std::shared_ptr<const void> memory_;
};

}  // namespace

Transfer* start_compressed_message(Lane& lane, const Call& call) {
  auto message = std::make_unique<CompressedMessage>(lane, call);
  return message->complete() ? nullptr : message.release();  // receives are never complete at once
}

}  // namespace medley::algorithms
