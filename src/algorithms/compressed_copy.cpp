// Compressed collectives without a reduction: every value is rounded once, by the codec's bound. Where several ranks
// receive the same data (all_gather, broadcast) the rank that sent them decodes them too, so that all have the same
// bits.
#include "algorithms/algorithms.hpp"
#include "algorithms/compressed.hpp"
#include "algorithms/registry.hpp"

namespace medley::algorithms {
namespace {

using Rounds = std::vector<std::vector<IncomingFrame>>;

/// Expects every other rank's part. In the order in which it is sent, though for frames without a fixed size there is
/// one round only.
Rounds expect_parts(FrameExchange& exchange, Parts parts) {
  Rounds rounds(static_cast<std::size_t>(exchange.rounds(parts)));
  for (std::size_t k = 0; k < rounds.size(); ++k) exchange.expect_round(rounds[k], parts, static_cast<std::int64_t>(k));
  return rounds;
}

Task take_parts(FrameExchange& exchange, Parts parts, Rounds& rounds) {
  for (std::size_t k = 0; k < rounds.size(); ++k)
    co_await exchange.take_round(rounds[k], parts, static_cast<std::int64_t>(k));
}

Task send_parts(FrameExchange& exchange, Parts parts) {
  for (std::int64_t k = 0; k < exchange.rounds(parts); ++k) co_await exchange.send_round(parts, k);
}

}  // namespace

Task compressed_all_gather(Job& job) {
  FrameExchange exchange(job);
  const Parts parts = job.out_slices();
  Rounds arriving = expect_parts(exchange, parts);
  const Segments own = exchange.segments(job.call.in_count);
  for (std::int64_t k = 0; k < own.size(); ++k) {
    OutgoingFrame& frame = exchange.outgoing();
    co_await exchange.encode(job.in(own[k].at), own[k].count, nullptr, frame);
    for (int step = 1; step < job.size; ++step) exchange.send(frame, job.peer(step));
    const compress::FrameReader reader = exchange.reader(frame, own[k].count);
    co_await exchange.decode(reader, job.out(parts.at(job.rank) + own[k].at));
  }
  co_await take_parts(exchange, parts, arriving);
  co_await exchange.settle();
}

Task compressed_all_to_all(Job& job) {
  FrameExchange exchange(job);
  const Parts in = job.in_slices(), out = job.out_slices();
  Rounds arriving = expect_parts(exchange, out);
  co_await send_parts(exchange, in);  // in place: nothing is written before everything is encoded
  exchange.copy(job.out(out.at(job.rank)), job.in(in.at(job.rank)), job.bytes(in.count(job.rank)));
  co_await take_parts(exchange, out, arriving);
  co_await exchange.settle();
}

Task compressed_gather(Job& job) {
  FrameExchange exchange(job);
  if (job.rank != job.call.root) {
    const Segments own = exchange.segments(job.call.in_count);
    for (std::int64_t k = 0; k < own.size(); ++k) {
      OutgoingFrame& frame = exchange.outgoing();
      co_await exchange.encode(job.in(own[k].at), own[k].count, nullptr, frame);
      exchange.send(frame, job.call.root);
    }
    co_await job.messages.all();
    co_return;
  }
  const Parts parts = job.out_slices();
  Rounds arriving = expect_parts(exchange, parts);
  exchange.copy(job.out(parts.at(job.rank)), job.in(), job.bytes(job.call.in_count));
  co_await take_parts(exchange, parts, arriving);
  co_await exchange.settle();
}

Task compressed_scatter(Job& job) {
  FrameExchange exchange(job);
  if (job.rank == job.call.root) {
    const Parts parts = job.in_slices();
    co_await send_parts(exchange, parts);
    exchange.copy(job.out(), job.in(parts.at(job.rank)), job.bytes(parts.count(job.rank)));
    co_await exchange.settle();
    co_return;
  }
  const Segments own = exchange.segments(job.call.out_count);
  Rounds arriving(static_cast<std::size_t>(own.size()));
  for (std::size_t k = 0; k < arriving.size(); ++k) {
    arriving[k].resize(1);
    exchange.expect(arriving[k].front(), job.call.root, own[static_cast<std::int64_t>(k)].count);
  }
  for (std::size_t k = 0; k < arriving.size(); ++k) {
    co_await exchange.arrive(arriving[k]);
    const compress::FrameReader reader = exchange.reader(arriving[k].front());
    co_await exchange.decode(reader, job.out(own[static_cast<std::int64_t>(k)].at));
  }
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
    if (length < compress::frame_header_bytes ||
        length > compress::most_frame_bytes(exchange.codec(), job.call.dtype, count)) {
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
