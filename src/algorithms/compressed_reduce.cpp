// Compressed reductions. Each rank owns a part: the others send it compressed, the owner decodes and combines all in rank order, in f32
// for lossy codecs (the type itself for lossless ones). For all_reduce and reduce the result is compressed and sent on. With a bound e(x)
// of the codec: |error| <= Σ over the other ranks of e(x_r), plus e(result) for all_reduce and reduce, plus the rounding of the
// sum, (n-1)·u·Σ|x|. The owner's own values are never rounded.
#include <algorithm>
#include <cstring>

#include "algorithms/algorithms.hpp"
#include "algorithms/compressed.hpp"
#include "reduce/half.hpp"

namespace medley::algorithms {
namespace {

/// The chunks of this rank's part of all ranks, decoded and combined one after the other.
class OwnedPart {
 public:
  OwnedPart(Job& job, const FrameExchange& exchange, const std::vector<IncomingFrame>& arrived, const std::byte* own)
      : job_(job),
        type_(exchange.codec().work_type(job.call.dtype)),
        chunk_bytes_(compress::chunk_values * size_of(type_)),
        own_(own),
        values_(chunk_bytes_ * static_cast<std::size_t>(job.size + 1)) {
    for (const IncomingFrame& frame : arrived) readers_.push_back(exchange.reader(frame));
  }
  /// Combines chunk number `index` of `count` values; the result stays valid until the next call.
  const std::byte* combine(std::int64_t index, std::size_t count) {
    std::vector<const void*> sources(static_cast<std::size_t>(job_.size));
    std::size_t next = 0;   // the frames are in rank order, without this rank's
    for (int r = 0; r < job_.size; ++r) {
      std::byte* const place = values_.data() + static_cast<std::size_t>(r) * chunk_bytes_;
      if (r == job_.rank) {
        load_own(own_ + job_.bytes(index * std::int64_t{compress::chunk_values}), place, count);
      } else {
        readers_[next++].read_work(index, place);
      }
      sources[static_cast<std::size_t>(r)] = place;
    }
    std::byte* const result = values_.data() + static_cast<std::size_t>(job_.size) * chunk_bytes_;
    const int divisor = job_.call.reduce == ReduceOp::avg ? job_.size : 1;
    reducer(type_, job_.call.reduce)(result, sources.data(), job_.size, count, divisor, false);
    return result;
  }

 private:
  void load_own(const std::byte* elements, std::byte* place, std::size_t count) const {
    if (type_ == job_.call.dtype) {
      std::memcpy(place, elements, count * size_of(type_));
    } else {
      widen_half(reinterpret_cast<float*>(place), elements, job_.call.dtype, count);
    }
  }
  Job& job_;
  DType type_;
  std::size_t chunk_bytes_;
  const std::byte* own_;
  Scratch values_;
  std::vector<compress::FrameReader> readers_;
};

/// Sends every owner its part and receives the others' values of this rank's part, in rank order.
Task exchange_parts(Job& job, FrameExchange& exchange, Parts parts, std::vector<OutgoingFrame>& sent, std::vector<IncomingFrame>& arrived) {
  exchange.expect_from_all(arrived, parts.count(job.rank));
  for (int step = 1; step < job.size; ++step) {
    const int to = job.peer(step);
    OutgoingFrame& frame = sent[static_cast<std::size_t>(to)];
    if (parts.count(to) == 0) continue;
    co_await exchange.encode(job.in(parts.at(to)), parts.count(to), FeedbackAccess::residual(job, parts.at(to)), frame);
    exchange.send(frame, to);
  }
  co_await exchange.arrive(arrived);
}

std::size_t values_of(std::int64_t part, std::int64_t chunk) {
  return static_cast<std::size_t>(std::min(std::int64_t{compress::chunk_values}, part - chunk * std::int64_t{compress::chunk_values}));
}

/// The first half of all_reduce and reduce: the compressed result of this rank's part.
Task reduce_own_part(Job& job, FrameExchange& exchange, Parts parts, OutgoingFrame& result, std::vector<OutgoingFrame>& sent) {
  std::vector<IncomingFrame> arrived;
  co_await exchange_parts(job, exchange, parts, sent, arrived);
  const std::int64_t count = parts.count(job.rank);
  if (count == 0) co_return;
  if (job.device) {
    exchange.combine_on_device(arrived, job.in(parts.at(job.rank)), nullptr, &result);
    co_await job.device->frames->done();
    compress::seal_frame(exchange.codec(), job.call.dtype, count, result.span());
    co_return;
  }
  result.memory = FrameMemory(job, compress::most_frame_bytes(exchange.codec(), job.call.dtype, count));
  compress::FrameWriter writer(exchange.codec(), job.call.dtype, count, result.memory.data());
  OwnedPart owned(job, exchange, arrived, job.in(parts.at(job.rank)));
  for (std::int64_t i = 0; !writer.complete(); ++i) {
    const std::byte* combined = owned.combine(i, values_of(count, i));
    writer.add_result(combined, FeedbackAccess::result(job, i * std::int64_t{compress::chunk_values}));
    co_await FrameExchange::yield();
  }
  result.bytes = writer.finish();
}

/// Decodes the results of all parts into the output; every rank decodes its own too, so that all get the same bits.
Task take_results(Job& job, FrameExchange& exchange, Parts parts, const OutgoingFrame& own) {
  std::vector<IncomingFrame> results;
  results.reserve(static_cast<std::size_t>(job.size));
  for (int r = 0; r < job.size; ++r) {
    if (r != job.rank) exchange.expect(results.emplace_back(), r, parts.count(r));
  }
  co_await exchange.arrive(results);
  for (const IncomingFrame& frame : results) {
    if (frame.count == 0) continue;
    const compress::FrameReader reader = exchange.reader(frame);
    co_await exchange.decode(reader, job.out(parts.at(frame.from)));
  }
  if (parts.count(job.rank) > 0) {
    const compress::FrameReader reader = exchange.reader(own, parts.count(job.rank));
    co_await exchange.decode(reader, job.out(parts.at(job.rank)));
  }
  co_await exchange.settle();
}

}  // namespace

Task compressed_all_reduce(Job& job) {
  FrameExchange exchange(job);
  const Parts parts = Parts::even(job.call.in_count, job.size);
  std::vector<OutgoingFrame> sent(static_cast<std::size_t>(job.size));
  OutgoingFrame result;
  co_await reduce_own_part(job, exchange, parts, result, sent);
  for (int step = 1; step < job.size && parts.count(job.rank) > 0; ++step) exchange.send(result, job.peer(step));
  co_await take_results(job, exchange, parts, result);
}

Task compressed_reduce(Job& job) {
  FrameExchange exchange(job);
  const Parts parts = Parts::even(job.call.in_count, job.size);
  std::vector<OutgoingFrame> sent(static_cast<std::size_t>(job.size));
  OutgoingFrame result;
  co_await reduce_own_part(job, exchange, parts, result, sent);
  if (job.rank == job.call.root) {
    co_await take_results(job, exchange, parts, result);
  } else {
    if (parts.count(job.rank) > 0) exchange.send(result, job.call.root);
    co_await job.messages.all();
  }
}

Task compressed_reduce_scatter(Job& job) {
  FrameExchange exchange(job);
  const Parts parts = job.in_slices();
  std::vector<OutgoingFrame> sent(static_cast<std::size_t>(job.size));
  std::vector<IncomingFrame> arrived;
  co_await exchange_parts(job, exchange, parts, sent, arrived);
  const std::int64_t count = parts.count(job.rank);
  if (count == 0) co_return;
  if (job.device) {
    exchange.combine_on_device(arrived, job.in(parts.at(job.rank)), job.out(), nullptr);
    co_await exchange.settle();
    co_return;
  }
  OwnedPart owned(job, exchange, arrived, job.in(parts.at(job.rank)));
  const DType type = exchange.codec().work_type(job.call.dtype);
  for (std::int64_t i = 0; i < compress::chunks_of(count); ++i) {
    const std::byte* combined = owned.combine(i, values_of(count, i));
    std::byte* const to = job.out(i * std::int64_t{compress::chunk_values});
    if (type == job.call.dtype) {
      std::memcpy(to, combined, values_of(count, i) * size_of(type));
    } else {
      narrow_half(to, reinterpret_cast<const float*>(combined), job.call.dtype, values_of(count, i));
    }
    co_await FrameExchange::yield();
  }
}

}  // namespace medley::algorithms
