// Compressed collectives without a reduction: every value is rounded once, by the codec's bound. Where several ranks receive the same data
// (all_gather, broadcast) the rank that sent them decodes them too, so that all have the same bits.
#include "algorithms/algorithms.hpp"
#include "algorithms/compressed.hpp"
#include "algorithms/registry.hpp"

namespace medley::algorithms {
namespace {

Task decode_all(Job& job, FrameExchange& exchange, Parts parts, const std::vector<IncomingFrame>& frames) {
  for (const IncomingFrame& frame : frames) {
    if (frame.count == 0) continue;
    const compress::FrameReader reader = exchange.reader(frame);
    co_await exchange.decode(reader, job.out(parts.at(frame.from)));
  }
}

std::vector<IncomingFrame> expect_parts(Job& job, FrameExchange& exchange, const Parts& parts) {
  std::vector<IncomingFrame> frames(static_cast<std::size_t>(job.size - 1));   // never moved: messages point into it
  std::size_t next = 0;
  for (int r = 0; r < job.size; ++r) {
    if (r != job.rank) exchange.expect(frames[next++], r, parts.count(r));
  }
  return frames;
}

/// Encodes each rank's part of the input and sends it.
Task send_parts(Job& job, FrameExchange& exchange, Parts parts, std::vector<OutgoingFrame>& sent) {
  for (int step = 1; step < job.size; ++step) {
    const int to = job.peer(step);
    if (parts.count(to) == 0) continue;
    OutgoingFrame& frame = sent[static_cast<std::size_t>(to)];
    co_await exchange.encode(job.in(parts.at(to)), parts.count(to), nullptr, frame);
    exchange.send(frame, to);
  }
}

}  // namespace

Task compressed_all_gather(Job& job) {
  FrameExchange exchange(job);
  const Parts parts = job.out_slices();
  std::vector<IncomingFrame> arrived = expect_parts(job, exchange, parts);
  OutgoingFrame own;
  if (job.call.in_count > 0) {
    co_await exchange.encode(job.in(), job.call.in_count, nullptr, own);
    for (int step = 1; step < job.size; ++step) exchange.send(own, job.peer(step));
  }
  co_await exchange.arrive(arrived);
  co_await decode_all(job, exchange, parts, arrived);
  if (job.call.in_count > 0) {
    const compress::FrameReader reader = exchange.reader(own, job.call.in_count);
    co_await exchange.decode(reader, job.out(parts.at(job.rank)));
  }
  co_await exchange.settle();
}

Task compressed_all_to_all(Job& job) {
  FrameExchange exchange(job);
  const Parts in = job.in_slices(), out = job.out_slices();
  std::vector<IncomingFrame> arrived = expect_parts(job, exchange, out);
  std::vector<OutgoingFrame> sent(static_cast<std::size_t>(job.size));
  co_await send_parts(job, exchange, in, sent);
  co_await exchange.arrive(arrived);   // in place: nothing is written before everything is encoded
  exchange.copy(job.out(out.at(job.rank)), job.in(in.at(job.rank)), job.bytes(in.count(job.rank)));
  co_await decode_all(job, exchange, out, arrived);
  co_await exchange.settle();
}

Task compressed_gather(Job& job) {
  FrameExchange exchange(job);
  if (job.rank != job.call.root) {
    OutgoingFrame own;
    if (job.call.in_count > 0) {
      co_await exchange.encode(job.in(), job.call.in_count, nullptr, own);
      exchange.send(own, job.call.root);
    }
    co_await job.messages.all();
    co_return;
  }
  const Parts parts = job.out_slices();
  std::vector<IncomingFrame> arrived = expect_parts(job, exchange, parts);
  co_await exchange.arrive(arrived);
  exchange.copy(job.out(parts.at(job.rank)), job.in(), job.bytes(job.call.in_count));
  co_await decode_all(job, exchange, parts, arrived);
  co_await exchange.settle();
}

Task compressed_scatter(Job& job) {
  FrameExchange exchange(job);
  if (job.rank == job.call.root) {
    const Parts parts = job.in_slices();
    std::vector<OutgoingFrame> sent(static_cast<std::size_t>(job.size));
    co_await send_parts(job, exchange, parts, sent);
    exchange.copy(job.out(), job.in(parts.at(job.rank)), job.bytes(parts.count(job.rank)));
    co_await job.messages.all();
    co_await exchange.settle();
    co_return;
  }
  std::vector<IncomingFrame> arrived(1);
  exchange.expect(arrived.front(), job.call.root, job.call.out_count);
  co_await exchange.arrive(arrived);
  if (job.call.out_count == 0) co_return;
  const compress::FrameReader reader = exchange.reader(arrived.front());
  co_await exchange.decode(reader, job.out());
  co_await exchange.settle();
}

/// The frame itself travels by the usual broadcast of its bytes, after its length where that is not known.
Task compressed_broadcast(Job& job) {
  FrameExchange exchange(job);
  const bool root = job.rank == job.call.root;
  const std::int64_t count = root ? job.call.in_count : job.call.out_count;
  if (count == 0) co_return;
  OutgoingFrame own;
  IncomingFrame arrived{.from = job.call.root, .count = count};
  arrived.bytes = compress::most_frame_bytes(exchange.codec(), job.call.dtype, count);
  if (root) {
    co_await exchange.encode(job.in(), count, nullptr, own);
    arrived.bytes = own.bytes;
  }
  Call call = job.call;
  Job bytes{call, job.rank, job.size, job.messages};
  call.dtype = DType::u8;
  const auto carry = [&](const void* from, void* to, std::uint64_t length) {
    call.in = root ? from : nullptr;
    call.out = root ? nullptr : to;
    (root ? call.in_count : call.out_count) = static_cast<std::int64_t>(length);
    return choose(call, job.size).run(bytes);
  };
  if (!exchange.codec().fixed_size()) {
    std::uint64_t length = own.bytes;
    co_await carry(&length, &length, sizeof length);
    if (length < compress::frame_header_bytes || length > compress::most_frame_bytes(exchange.codec(), job.call.dtype, count)) {
      throw compress::Corrupt("a frame has an impossible length");
    }
    arrived.bytes = length;
  }
  if (!root) arrived.memory = FrameMemory(job, static_cast<std::size_t>(arrived.bytes));
  arrived.data = arrived.memory.data();
  co_await carry(own.memory.data(), arrived.data, arrived.bytes);
  if (root && !exchange.codec().lossy()) co_return;
  const compress::FrameReader reader = root ? exchange.reader(own, count) : exchange.reader(arrived);
  // The root's buffer is the caller's to write: broadcast takes one buffer for both directions.
  co_await exchange.decode(reader, root ? static_cast<std::byte*>(const_cast<void*>(job.call.in)) : job.out());
  co_await exchange.settle();
}

}  // namespace medley::algorithms
