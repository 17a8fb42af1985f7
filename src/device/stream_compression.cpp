#include "device/stream_compression.hpp"

#include <algorithm>
#include <utility>

#include "algorithms/compressed.hpp"
#include "algorithms/device_frames.hpp"
#include "compress/frame.hpp"

namespace medley::core {

using algorithms::FeedbackAccess;

StreamCompression::StreamCompression(StreamLane& lane, const Call& call)
    : lane_(lane),
      device_(lane.device_),
      stream_(lane.stream_),
      call_(call),
      rank_(lane.rank_),
      ranks_(lane.ranks_),
      codec_(compress::codec_of(call.algorithm)),
      kernel_(*algorithms::block_codec(codec_.spec().kind)),
      task_(run()) {}

StreamCompression::~StreamCompression() {
  for (void* memory : scratch_) device().free_in(memory, stream_);
  for (void* event : events_) device().release_event(event);
}

Poll StreamCompression::poll() {
  moved_ = false;
  const Poll seen = task_.poll();
  return seen == Poll::waiting && moved_ ? Poll::moved : seen;
}

bool StreamCompression::order(void* stream) {
  if (done_) device().wait(stream, done_);
  return done_ != nullptr;
}

void StreamCompression::release() noexcept {
  if (running_.empty()) {
    delete this;
  } else {
    lane_.orphans_.push_back(this);
  }
}

void StreamCompression::abandon(std::shared_ptr<const void> memory) noexcept {
  if (running_.empty()) return release();
  memory_ = std::move(memory);
  running_.abandon(std::shared_ptr<StreamCompression>(this, std::default_delete<StreamCompression>()));
}

std::byte* StreamCompression::scratch(std::size_t size) {
  return static_cast<std::byte*>(scratch_.emplace_back(device().allocate_in(std::max<std::size_t>(size, 16), stream_)));
}

/// Without a header: sizes are equal on all ranks, and the library checks what it moves.
std::size_t StreamCompression::frame_bytes(std::int64_t count) const {
  return count == 0 ? 0 : compress::most_frame_bytes(codec_, call_.dtype, count) - compress::frame_header_bytes;
}

std::vector<std::int64_t> StreamCompression::offsets_of(const std::vector<std::int64_t>& counts) const {
  std::vector<std::int64_t> offsets{0};
  for (const std::int64_t count : counts)
    offsets.push_back(offsets.back() + static_cast<std::int64_t>(algorithms::frame_stride(frame_bytes(count))));
  return offsets;
}

DeviceFrame StreamCompression::frame(std::byte* chunks, std::int64_t count) const {
  return {.codec = kernel_, .dtype = call_.dtype, .count = count, .chunks = chunks};
}

std::shared_ptr<float> StreamCompression::zeros(std::int64_t count) {
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(count, 1)) * sizeof(float);
  auto* const memory = static_cast<float*>(device().allocate_zeros(size, stream_));
  return {memory, [device = device_, stream = stream_](float* gone) { device->free_in(gone, stream); }};
}

float* StreamCompression::residual(std::int64_t at) {
  return FeedbackAccess::residual_on_device(call_, at, [this](std::int64_t count) { return zeros(count); });
}

float* StreamCompression::result_residual() {
  return FeedbackAccess::result_on_device(call_, [this](std::int64_t count) { return zeros(count); });
}

/// They are valid only while the call starts.
void StreamCompression::wait_for_dependencies() {
  if (!call_.dependencies) return;
  device().wait(stream_, call_.dependencies->ready);
  for (Transfer* earlier : call_.dependencies->transfers) earlier->order(stream_);
  call_.dependencies = nullptr;
}

Task StreamCompression::over_library(Call part) {
  part.dtype = DType::u8;
  part.memory = Memory::cuda;
  part.stream = call_.stream;
  events_.push_back(device().record(stream_));
  dependencies_ = {.ready = events_.back()};
  part.dependencies = &dependencies_;
  running_.add(lane_.inner_->start(part));
  co_await until([this] {
    lane_.inner_->progress();
    return running_.poll(moved_) || running_.launched();
  });
  running_.order(stream_);  // none is left where the host saw all complete
}

Task StreamCompression::exchange(Parts sent, const std::vector<std::int64_t>& expected) {
  std::vector<std::int64_t> counts;
  for (int r = 0; r < ranks_; ++r) counts.push_back(r == rank_ ? 0 : sent.count(r));
  sent_offsets_ = offsets_of(counts);
  got_offsets_ = offsets_of(expected);
  std::byte* const frames = scratch(static_cast<std::size_t>(sent_offsets_.back()));
  got_ = scratch(static_cast<std::size_t>(got_offsets_.back()));
  Call part;
  part.op = Op::all_to_allv;
  for (int r = 0; r < ranks_; ++r) {
    const std::int64_t count = counts[static_cast<std::size_t>(r)];
    if (count > 0)
      device().encode(frame(frames + sent_offsets_[static_cast<std::size_t>(r)], count), in(sent.at(r)),
                      residual(sent.at(r)), stream_);
    sent_counts_.push_back(static_cast<std::int64_t>(frame_bytes(count)));
    got_counts_.push_back(static_cast<std::int64_t>(frame_bytes(expected[static_cast<std::size_t>(r)])));
    part.in_count += sent_counts_.back();
    part.out_count += got_counts_.back();
  }
  part.in = frames;
  part.out = got_;
  part.in_counts = sent_counts_.data();
  part.in_offsets = sent_offsets_.data();
  part.out_counts = got_counts_.data();
  part.out_offsets = got_offsets_.data();
  co_await over_library(part);
}

/// all_reduce, and reduce_scatter, which keeps the combined part.
Task StreamCompression::reduce_parts(bool to_all) {
  const Parts parts = to_all ? Parts::even(call_.in_count, ranks_) : Parts::equal(call_.out_count);
  const std::int64_t own = parts.count(rank_),
                     each = static_cast<std::int64_t>(algorithms::frame_stride(frame_bytes(parts.count(0))));
  std::vector<std::int64_t> expected(static_cast<std::size_t>(ranks_), own);
  expected[static_cast<std::size_t>(rank_)] = 0;  // so the frames of the others are at equal distances
  co_await exchange(parts, expected);
  std::byte* const results = to_all ? scratch(static_cast<std::size_t>(each * ranks_)) : nullptr;
  DeviceReduction reduction{.first = frame(got_, own),
                            .stride = static_cast<std::int64_t>(algorithms::frame_stride(frame_bytes(own))),
                            .own = in(parts.at(rank_)),
                            .rank = rank_,
                            .ranks = ranks_,
                            .op = call_.reduce};
  if (to_all) {
    reduction.chunks = results + rank_ * each;
    reduction.residual = result_residual();
  } else {
    reduction.elements = out(0);
  }
  if (own > 0) device().combine(reduction, stream_);
  if (!to_all) co_return;
  Call part;
  part.op = Op::all_gather;
  part.in = results + rank_ * each;
  part.in_count = each;
  part.out = results;
  part.out_count = each * ranks_;
  co_await over_library(part);
  for (int r = 0; r < ranks_; ++r) {
    if (parts.count(r) > 0) device().decode(frame(results + r * each, parts.count(r)), out(parts.at(r)), stream_);
  }
}

Task StreamCompression::gather_parts() {
  const std::int64_t count = call_.in_count,
                     each = static_cast<std::int64_t>(algorithms::frame_stride(frame_bytes(count)));
  std::byte* const frames = scratch(static_cast<std::size_t>(each * ranks_));
  device().encode(frame(frames + rank_ * each, count), call_.in, nullptr, stream_);
  Call part;
  part.op = Op::all_gather;
  part.in = frames + rank_ * each;
  part.in_count = each;
  part.out = frames;
  part.out_count = each * ranks_;
  co_await over_library(part);
  for (int r = 0; r < ranks_; ++r) device().decode(frame(frames + r * each, count), out(r * count), stream_);
}

/// all_to_all and all_to_allv. In place: nothing is written before everything is encoded.
Task StreamCompression::exchange_parts() {
  const Parts sent =
      call_.in_counts ? Parts::listed(call_.in_counts, call_.in_offsets) : Parts::equal(call_.in_count / ranks_);
  const Parts got =
      call_.out_counts ? Parts::listed(call_.out_counts, call_.out_offsets) : Parts::equal(call_.out_count / ranks_);
  std::vector<std::int64_t> expected;
  for (int r = 0; r < ranks_; ++r) expected.push_back(r == rank_ ? 0 : got.count(r));
  co_await exchange(sent, expected);
  const std::byte* const own = in(sent.at(rank_));
  if (got.count(rank_) > 0 && own != out(got.at(rank_)))
    device().copy(out(got.at(rank_)), own, bytes(got.count(rank_)), stream_);
  for (int r = 0; r < ranks_; ++r) {
    const std::int64_t count = expected[static_cast<std::size_t>(r)];
    if (count > 0)
      device().decode(frame(got_ + got_offsets_[static_cast<std::size_t>(r)], count), out(got.at(r)), stream_);
  }
}

Task StreamCompression::run() {
  wait_for_dependencies();
  switch (call_.op) {
    case Op::all_reduce:
      if (call_.in_count > 0) co_await reduce_parts(true);
      break;
    case Op::reduce_scatter:
      if (call_.out_count > 0) co_await reduce_parts(false);
      break;
    case Op::all_gather:
      if (call_.in_count > 0) co_await gather_parts();
      break;
    default: co_await exchange_parts(); break;
  }
  events_.push_back(device().record(stream_));
  done_ = events_.back();
  co_await until([this] { return running_.poll(moved_) && device().completed(done_); });
}

}  // namespace medley::core
