// Compressed reductions. Each rank owns a part: the others send it compressed, the owner decodes and combines all in
// rank order, in f32 for lossy codecs (the type itself for lossless ones). For all_reduce and reduce the result is
// compressed and sent on. With a bound e(x) of the codec: |error| <= Σ over the other ranks of e(x_r), plus e(result)
// for all_reduce and reduce, plus the rounding of the sum, (n-1)·u·Σ|x|. The owner's own values are never rounded.
#include <algorithm>
#include <cstring>

#include "algorithms/algorithms.hpp"
#include "algorithms/compressed.hpp"
#include "reduce/half.hpp"

namespace medley::algorithms {
namespace {

/// A result is sent this many rounds after the parts that it combines: parts that are encoded meanwhile keep the link
/// busy until those of the other ranks arrive. Part of the order in which the frames of a pair travel, so the same on
/// all ranks.
constexpr std::int64_t result_lag = 2;

std::size_t values_of(std::int64_t part, std::int64_t chunk) {
  return static_cast<std::size_t>(
      std::min(std::int64_t{compress::chunk_values}, part - chunk * std::int64_t{compress::chunk_values}));
}

/// The segments of this rank's part of all ranks, decoded and combined chunk by chunk.
class OwnedPart {
 public:
  OwnedPart(Job& job, const FrameExchange& exchange)
      : job_(job),
        exchange_(exchange),
        type_(exchange.codec().work_type(job.call.dtype)),
        chunk_bytes_(compress::chunk_values * size_of(type_)),
        values_(job.device ? 0 : chunk_bytes_ * static_cast<std::size_t>(job.size + 1)) {}
  /// The next segment: the other ranks' frames, in rank order, and this rank's elements.
  void begin(const std::vector<IncomingFrame>& arrived, const std::byte* own) {
    own_ = own;
    readers_.clear();
    for (const IncomingFrame& frame : arrived) readers_.push_back(exchange_.reader(frame));
  }
  /// Combines chunk number `index` of `count` values; the result stays valid until the next call.
  const std::byte* combine(std::int64_t index, std::size_t count) {
    std::vector<const void*> sources(static_cast<std::size_t>(job_.size));
    std::size_t next = 0;  // the frames are in rank order, without this rank's
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
  const FrameExchange& exchange_;
  DType type_;
  std::size_t chunk_bytes_;
  Scratch values_;
  const std::byte* own_ = nullptr;
  std::vector<compress::FrameReader> readers_;
};

/// The compressed result of one segment of this rank's part.
Task reduce_segment(Job& job, FrameExchange& exchange, OwnedPart& owned, const std::vector<IncomingFrame>& arrived,
                    std::int64_t part_at, Segment segment, OutgoingFrame& result) {
  const std::byte* const own = job.in(part_at + segment.at);
  if (job.device) {
    exchange.combine_on_device(arrived, own, nullptr, &result, FeedbackAccess::result(job, segment.at));
    co_await job.device->frames->done();
    compress::seal_frame(exchange.codec(), job.call.dtype, segment.count, result.span());
    co_return;
  }
  result.memory = FrameMemory(job, compress::most_frame_bytes(exchange.codec(), job.call.dtype, segment.count));
  compress::FrameWriter writer(exchange.codec(), job.call.dtype, segment.count, result.memory.data());
  owned.begin(arrived, own);
  for (std::int64_t i = 0; !writer.complete(); ++i) {
    const std::byte* combined = owned.combine(i, values_of(segment.count, i));
    writer.add_result(combined, FeedbackAccess::result(job, segment.at + i * std::int64_t{compress::chunk_values}));
    co_await FrameExchange::yield();
  }
  result.bytes = writer.finish();
}

/// all_reduce, and reduce, whose results go to the root alone. In each round a rank sends the others their segments
/// and, a little later, the result of its own one. Frames of a pair travel in the order of these steps, which is that
/// of `expect` too. Every rank that takes results decodes its own as well, so that all get the same bits; a result is
/// decoded where its input was encoded before, so it may be in place.
Task reduce_all_parts(Job& job, int root) {
  FrameExchange exchange(job);
  const Parts parts = Parts::even(job.call.in_count, job.size);
  const std::int64_t rounds = exchange.rounds(parts), part_at = parts.at(job.rank);
  const Segments own = exchange.segments(parts.count(job.rank));
  const bool takes = root < 0 || root == job.rank, at_once = exchange.codec().fixed_size();
  std::vector<std::vector<IncomingFrame>> arrived(static_cast<std::size_t>(rounds)),
      results(static_cast<std::size_t>(rounds));
  const auto expect_segments = [&](std::int64_t k) {
    exchange.expect_from_all(arrived[static_cast<std::size_t>(k)], own[k].count);
  };
  const auto expect_results = [&](std::int64_t k) {
    if (takes) exchange.expect_round(results[static_cast<std::size_t>(k)], parts, k);
  };
  for (std::int64_t step = 0; at_once && step < rounds + result_lag; ++step) {
    if (step < rounds) expect_segments(step);
    if (step >= result_lag) expect_results(step - result_lag);
  }
  OwnedPart owned(job, exchange);
  for (std::int64_t step = 0; step < rounds + result_lag; ++step) {
    if (step < rounds) {
      if (!at_once) expect_segments(step);
      co_await exchange.send_round(parts, step);
    }
    const std::int64_t k = step - result_lag;
    if (k < 0) continue;
    if (own[k].count > 0) {
      auto& frames = arrived[static_cast<std::size_t>(k)];
      co_await exchange.arrive(frames);
      OutgoingFrame& result = exchange.outgoing();
      co_await reduce_segment(job, exchange, owned, frames, part_at, own[k], result);
      for (int other = 1; other < job.size; ++other) {
        if (root < 0 || root == job.peer(other)) exchange.send(result, job.peer(other));
      }
      if (takes) {
        const compress::FrameReader reader = exchange.reader(result, own[k].count);
        co_await exchange.decode(reader, job.out(part_at + own[k].at));
      }
    }
    if (!at_once) expect_results(k);
  }
  for (std::int64_t k = 0; takes && k < rounds; ++k)
    co_await exchange.take_round(results[static_cast<std::size_t>(k)], parts, k);
  co_await exchange.settle();
}

}  // namespace

Task compressed_all_reduce(Job& job) { return reduce_all_parts(job, -1); }

Task compressed_reduce(Job& job) { return reduce_all_parts(job, job.call.root); }

Task compressed_reduce_scatter(Job& job) {
  FrameExchange exchange(job);
  const Parts parts = job.in_slices();
  const Segments own = exchange.segments(parts.count(job.rank));
  std::vector<std::vector<IncomingFrame>> arrived(static_cast<std::size_t>(own.size()));
  for (std::size_t k = 0; k < arrived.size(); ++k)
    exchange.expect_from_all(arrived[k], own[static_cast<std::int64_t>(k)].count);
  // In place: before anything is written
  for (std::int64_t k = 0; k < exchange.rounds(parts); ++k) co_await exchange.send_round(parts, k);
  OwnedPart owned(job, exchange);
  const DType type = exchange.codec().work_type(job.call.dtype);
  for (std::int64_t k = 0; k < own.size(); ++k) {
    auto& frames = arrived[static_cast<std::size_t>(k)];
    co_await exchange.arrive(frames);
    const std::byte* const elements = job.in(parts.at(job.rank) + own[k].at);
    if (job.device) {
      exchange.combine_on_device(frames, elements, job.out(own[k].at), nullptr, nullptr);
      continue;
    }
    owned.begin(frames, elements);
    for (std::int64_t i = 0; i < compress::chunks_of(own[k].count); ++i) {
      const std::size_t count = values_of(own[k].count, i);
      const std::byte* combined = owned.combine(i, count);
      std::byte* const to = job.out(own[k].at + i * std::int64_t{compress::chunk_values});
      if (type == job.call.dtype) {
        std::memcpy(to, combined, count * size_of(type));
      } else {
        narrow_half(to, reinterpret_cast<const float*>(combined), job.call.dtype, count);
      }
      co_await FrameExchange::yield();
    }
  }
  co_await exchange.settle();
}

}  // namespace medley::algorithms
