#include "algorithms/compressed.hpp"

#include <fmt/format.h>

namespace medley::algorithms {
namespace {

constexpr std::int64_t chunks_per_poll = 4;   // about 50 µs of the engine's lock

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
  if (!is_collective(call.op) && call.memory == Memory::cuda) return "sends and receives of CUDA memory cannot be compressed";
  const bool small_float = call.dtype == DType::f32 || call.dtype == DType::f16 || call.dtype == DType::bf16;
  if (spec.lossy() && !small_float) {
    return fmt::format("{} compresses f32, f16 and bf16, not {}; lz4 and zstd take every type", text, name(call.dtype));
  }
  if (spec.kind == compress::Kind::top_k && (!reduces(call.op) || !call.feedback)) {
    return fmt::format("{} leaves most values out, so it needs a reduction with error feedback (Options::feedback)", text);
  }
  return {};
}

void FeedbackAccess::prepare(const Call& call, int rank, int ranks) {
  if (!call.feedback) return;
  if (!reduces(call.op)) {
    throw Error(ErrorKind::invalid, fmt::format("error feedback is for reductions, not for {}", name(call.op)));
  }
  ErrorFeedback& feedback = *call.feedback;
  const bool sends_result = call.op == Op::all_reduce || call.op == Op::reduce;
  const std::int64_t own = sends_result ? Parts::even(call.in_count, ranks).count(rank) : 0;
  if (feedback.residual_.empty()) {
    feedback.residual_.assign(static_cast<std::size_t>(call.in_count), 0.0f);
    feedback.result_.assign(static_cast<std::size_t>(own), 0.0f);
  }
  if (feedback.count() == call.in_count && static_cast<std::int64_t>(feedback.result_.size()) == own) return;
  throw Error(ErrorKind::invalid,
              fmt::format("the error feedback belongs to a tensor of {} elements with {} of the result on this rank, but this call has {} "
                          "and {}; use one ErrorFeedback per tensor and comm, or reset() it",
                          feedback.count(), feedback.result_.size(), call.in_count, own));
}

Task FrameExchange::encode(const std::byte* elements, std::int64_t count, float* residual, OutgoingFrame& frame) {
  const DType dtype = job_.call.dtype;
  frame.memory = Scratch(compress::most_frame_bytes(codec_, dtype, count));
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
  frame.memory = Scratch(static_cast<std::size_t>(frame.bytes));
  frame.ticket = job_.messages.recv(frame.memory.data(), static_cast<std::size_t>(frame.bytes), from);
}

Task FrameExchange::arrive(std::vector<IncomingFrame>& frames) {
  if (!codec_.fixed_size()) {
    for (IncomingFrame& frame : frames) {
      if (frame.count == 0) continue;
      co_await job_.messages.done(frame.ticket);
      if (frame.bytes < compress::frame_header_bytes || frame.bytes > compress::most_frame_bytes(codec_, job_.call.dtype, frame.count)) {
        throw_from(compress::Corrupt(fmt::format("a frame of {} values says that it has {} bytes", frame.count, frame.bytes)), frame.from);
      }
      frame.memory = Scratch(static_cast<std::size_t>(frame.bytes));
      job_.messages.recv(frame.memory.data(), static_cast<std::size_t>(frame.bytes), frame.from);
    }
  }
  co_await job_.messages.all();
}

compress::FrameReader FrameExchange::reader(const IncomingFrame& frame) const {
  try {
    return {codec_, job_.call.dtype, frame.count, {frame.memory.data(), static_cast<std::size_t>(frame.bytes)}};
  } catch (const Error& error) {
    throw_from(error, frame.from);
  }
}

Task FrameExchange::decode(const compress::FrameReader& reader, std::byte* elements) {
  for (std::int64_t i = 0; i < reader.chunks(); ++i) {
    reader.read(i, elements + job_.bytes(i * std::int64_t{compress::chunk_values}));
    if (i % chunks_per_poll == chunks_per_poll - 1) co_await yield();
  }
}

}  // namespace medley::algorithms
