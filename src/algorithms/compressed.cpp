#include "algorithms/compressed.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace medley::algorithms {
namespace {

constexpr std::int64_t chunks_per_poll = 4;  // about 50 µs of the engine's lock

/// An error of a frame, with the rank that sent it.
[[noreturn]] void throw_from(const Error& error, int from) {
  throw Error(error.kind(), fmt::format("from rank {}: {}", from, error.what()), {.ranks = {from}});
}

}  // namespace

std::string why_not_compressed(const Call& call, std::string_view algorithm) {
  const compress::Spec spec = compress::parse_spec(algorithm.substr(1));
  const std::string text = spec.text();
  if (std::string why = compress::why_unavailable(spec.kind); !why.empty()) return why;
  if (call.op == Op::barrier) return "a barrier has no data to compress";
  if (!is_collective(call.op) && call.memory == Memory::cuda)
    return "sends and receives of CUDA memory cannot be compressed";
  const bool small_float = call.dtype == DType::f32 || call.dtype == DType::f16 || call.dtype == DType::bf16;
  if (spec.lossy() && !small_float) {
    return fmt::format("{} compresses f32, f16 and bf16, not {}; lz4 and zstd take every type", text, name(call.dtype));
  }
  if (spec.kind == compress::Kind::top_k && (!reduces(call.op) || !call.feedback)) {
    return fmt::format("{} leaves most values out, so it needs a reduction with error feedback (Options::feedback)",
                       text);
  }
  return {};
}

std::string why_not_compressed_in_streams(const Call& call, std::string_view algorithm) {
  if (std::string why = why_not_compressed(call, algorithm); !why.empty()) return why;
  const compress::Spec spec = compress::parse_spec(algorithm.substr(1));
  if (!compresses_in_streams(call.op))
    return "in streams all_reduce, reduce_scatter, all_gather and all_to_all are compressed; name a host backend, which stages it";
  if (!block_codec(spec.kind))
    return fmt::format("{} has no kernels; name a host backend, which stages it", spec.text());
  return {};
}

float* FeedbackAccess::residual_on_device(const Call& call, std::int64_t at, const MakeZeros& zeros) {
  if (!call.feedback) return nullptr;
  if (!call.feedback->on_device_) call.feedback->on_device_ = zeros(call.feedback->count_);
  return call.feedback->on_device_.get() + at;
}

float* FeedbackAccess::result_on_device(const Call& call, const MakeZeros& zeros) {
  if (!call.feedback) return nullptr;
  if (!call.feedback->result_on_device_) call.feedback->result_on_device_ = zeros(call.feedback->result_count_);
  return call.feedback->result_on_device_.get();
}

void FeedbackAccess::prepare(const Call& call, int rank, int ranks) {
  if (!call.feedback) return;
  if (!reduces(call.op)) {
    throw Error(ErrorKind::invalid, fmt::format("error feedback is for reductions, not for {}", name(call.op)));
  }
  ErrorFeedback& feedback = *call.feedback;
  std::int64_t count = call.in_count;  // of a v-collective the sum of the parts, which may lie anywhere in the buffer
  for (int r = 0; call.in_counts && r < ranks; ++r) count = std::max(count, call.in_offsets[r] + call.in_counts[r]);
  const bool sends_result = call.op == Op::all_reduce || call.op == Op::reduce;
  const std::int64_t own = sends_result ? Parts::even(call.in_count, ranks).count(rank) : 0;
  if (feedback.count_ == 0) {
    feedback.count_ = count;
    feedback.result_count_ = own;
  }
  if (feedback.count_ == count && feedback.result_count_ == own) return;
  throw Error(
      ErrorKind::invalid,
      fmt::format(
          "the error feedback belongs to a tensor of {} elements with {} of the result on this rank, but this call has {} "
          "and {}; use one ErrorFeedback per tensor and comm, or reset() it",
          feedback.count_, feedback.result_count_, count, own));
}

float* FeedbackAccess::values(const Job& job, std::int64_t count, std::vector<float>& on_host,
                              std::shared_ptr<float>& on_device) {
  if (job.device) {
    if (!on_device) on_device = job.device->frames->zeros(count);
    return on_device.get();
  }
  if (on_host.empty()) on_host.assign(static_cast<std::size_t>(count), 0.0f);
  return on_host.data();
}

float* FeedbackAccess::residual(const Job& job, std::int64_t at) {
  ErrorFeedback* const feedback = job.call.feedback;
  return feedback ? values(job, feedback->count_, feedback->residual_, feedback->on_device_) + at : nullptr;
}

float* FeedbackAccess::result(const Job& job, std::int64_t at) {
  ErrorFeedback* const feedback = job.call.feedback;
  return feedback ? values(job, feedback->result_count_, feedback->result_, feedback->result_on_device_) + at : nullptr;
}

Task FrameExchange::encode(const std::byte* elements, std::int64_t count, float* residual, OutgoingFrame& frame) {
  const DType dtype = job_.call.dtype;
  frame.memory = FrameMemory(job_, compress::most_frame_bytes(codec_, dtype, count));
  if (job_.device) {
    frame.bytes = compress::most_frame_bytes(codec_, dtype, count);  // exactly: the device's codecs have fixed sizes
    job_.device->frames->encode(codec_, dtype, count, frame.memory.data(), elements, residual);
    co_await job_.device->frames->done();
    compress::seal_frame(codec_, dtype, count, frame.span());
    co_return;
  }
  compress::FrameWriter writer(codec_, dtype, count, frame.memory.data());
  for (std::int64_t at = 0; !writer.complete(); at += std::int64_t{compress::chunk_values}) {
    writer.add(elements + job_.bytes(at), residual ? residual + at : nullptr);
    if (at / std::int64_t{compress::chunk_values} % chunks_per_poll == chunks_per_poll - 1) co_await yield();
  }
  frame.bytes = writer.finish();
}

void FrameExchange::send(const OutgoingFrame& frame, int to) {
  if (!codec_.fixed_size()) job_.messages.send(&frame.bytes, sizeof frame.bytes, to);
  job_.messages.send(frame.memory.data(), static_cast<std::size_t>(frame.bytes), to);
}

void FrameExchange::expect(IncomingFrame& frame, int from, std::int64_t count) {
  frame.from = from;
  frame.count = count;
  if (count == 0) return;
  if (!codec_.fixed_size()) {
    frame.ticket = job_.messages.recv(&frame.bytes, sizeof frame.bytes, from);
    return;
  }
  frame.bytes = compress::most_frame_bytes(codec_, job_.call.dtype, count);
  if (!frame.data) {
    frame.memory = FrameMemory(job_, static_cast<std::size_t>(frame.bytes));
    frame.data = frame.memory.data();
  }
  frame.ticket = job_.messages.recv(frame.data, static_cast<std::size_t>(frame.bytes), from);
}

/// On a device, whose kernels expect them at equal distances, the frames are in one block.
void FrameExchange::expect_from_all(std::vector<IncomingFrame>& frames, std::int64_t count) {
  frames.resize(static_cast<std::size_t>(job_.size - 1));  // never moved: messages point into it
  const std::size_t stride = frame_stride(compress::most_frame_bytes(codec_, job_.call.dtype, count));
  if (job_.device && count > 0) frames.front().memory = FrameMemory(job_, stride * frames.size());
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (job_.device && count > 0) frames[i].data = frames.front().memory.data() + i * stride;
    expect(frames[i], static_cast<int>(i) + (static_cast<int>(i) >= job_.rank ? 1 : 0), count);
  }
}

void FrameExchange::expect_round(std::vector<IncomingFrame>& frames, Parts parts, std::int64_t round) {
  frames.resize(static_cast<std::size_t>(job_.size - 1));
  std::size_t next = 0;
  for (int r = 0; r < job_.size; ++r) {
    if (r != job_.rank) expect(frames[next++], r, segments(parts.count(r))[round].count);
  }
}

Task FrameExchange::send_round(Parts parts, std::int64_t round) {
  for (int step = 1; step < job_.size; ++step) {
    const int to = job_.peer(step);
    const Segment segment = segments(parts.count(to))[round];
    if (segment.count == 0) continue;
    const std::int64_t at = parts.at(to) + segment.at;
    OutgoingFrame& frame = outgoing();
    co_await encode(job_.in(at), segment.count, FeedbackAccess::residual(job_, at), frame);
    send(frame, to);
  }
}

Task FrameExchange::arrive(std::vector<IncomingFrame>& frames) {
  for (IncomingFrame& frame : frames) {
    if (frame.count == 0 || codec_.fixed_size()) continue;
    co_await job_.messages.done(frame.ticket);
    if (frame.bytes < compress::frame_header_bytes ||
        frame.bytes > compress::most_frame_bytes(codec_, job_.call.dtype, frame.count)) {
      throw_from(
          compress::Corrupt(fmt::format("a frame of {} values says that it has {} bytes", frame.count, frame.bytes)),
          frame.from);
    }
    frame.memory = FrameMemory(job_, static_cast<std::size_t>(frame.bytes));
    frame.data = frame.memory.data();
    frame.ticket = job_.messages.recv(frame.data, static_cast<std::size_t>(frame.bytes), frame.from);
  }
  for (const IncomingFrame& frame : frames) {
    if (frame.count > 0) co_await job_.messages.done(frame.ticket);
  }
}

Task FrameExchange::take_round(std::vector<IncomingFrame>& frames, Parts parts, std::int64_t round) {
  co_await arrive(frames);
  for (const IncomingFrame& frame : frames) {
    if (frame.count == 0) continue;
    const compress::FrameReader arrived = reader(frame);
    co_await decode(arrived, job_.out(parts.at(frame.from) + segments(parts.count(frame.from))[round].at));
  }
}

std::int64_t FrameExchange::rounds(Parts parts) const {
  std::int64_t most = 0;
  for (int r = 0; r < job_.size; ++r) most = std::max(most, segments(parts.count(r)).size());
  return most;
}

compress::FrameReader FrameExchange::reader(const IncomingFrame& frame) const {
  try {
    return {codec_, job_.call.dtype, frame.count, {frame.data, static_cast<std::size_t>(frame.bytes)}};
  } catch (const Error& error) {
    throw_from(error, frame.from);
  }
}

Task FrameExchange::decode(const compress::FrameReader& reader, std::byte* elements) {
  if (job_.device) {
    job_.device->frames->decode(codec_, job_.call.dtype, reader.count(), reader.frame(), elements);
    co_return;
  }
  for (std::int64_t i = 0; i < reader.chunks(); ++i) {
    reader.read(i, elements + job_.bytes(i * std::int64_t{compress::chunk_values}));
    if (i % chunks_per_poll == chunks_per_poll - 1) co_await yield();
  }
}

void FrameExchange::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (job_.device) job_.device->frames->copy(to, from, bytes);
  else copy_bytes(to, from, bytes);
}

void FrameExchange::combine_on_device(const std::vector<IncomingFrame>& arrived, const std::byte* own,
                                      std::byte* elements, OutgoingFrame* result, float* residual) {
  for (const IncomingFrame& frame : arrived) reader(frame);  // checks it
  const std::int64_t count = arrived.front().count;
  DeviceReduction reduction{.first = {.dtype = job_.call.dtype, .count = count},
                            .stride = static_cast<std::int64_t>(frame_stride(arrived.front().bytes)),
                            .own = own,
                            .rank = job_.rank,
                            .ranks = job_.size,
                            .op = job_.call.reduce,
                            .elements = elements};
  if (result) {
    result->bytes = compress::most_frame_bytes(codec_, job_.call.dtype, count);
    result->memory = FrameMemory(job_, static_cast<std::size_t>(result->bytes));
    reduction.residual = residual;
  }
  job_.device->frames->combine(codec_, reduction, arrived.front().data, result ? result->memory.data() : nullptr);
}

Task FrameExchange::settle() {
  co_await job_.messages.all();
  if (!job_.device) co_return;
  const DeviceFrames::Mark mark(*job_.device->frames);
  job_.device->last = mark.event();  // from here on a stream may wait for the collective
  co_await until([&mark] { return mark.reached(); });
  job_.device->last = nullptr;
}

}  // namespace medley::algorithms
