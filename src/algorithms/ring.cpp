// Ring: n-1 steps with the two neighbours, each moving 1/n of the data; the least a rank can send, for
// large tensors. Slice c is combined from rank c+1 around to rank c, a fixed order: |error| <= (n-1)·u·Σ|x|
// with u = 2^-53 for f64 and 2^-24 for f32, f16 and bf16, the last two plus one rounding of the result to
// their type.
#include "algorithms/ring.hpp"

#include <vector>

#include "algorithms/algorithms.hpp"
#include "algorithms/counted_segments.hpp"

namespace medley::algorithms {
namespace {

/// The part of a rank in segments.
struct SegmentRange {
  std::int64_t at;
  CountedSegments segments;
  int number() const { return segments.number(); }
  std::int64_t segment_at(int i) const { return at + segments.at(i); }
  std::int64_t segment_count(int i) const { return segments.count(i); }
};

SegmentRange segments_of(const Parts& parts, int rank, std::size_t element) {
  return {parts.at(rank), CountedSegments(parts.count(rank), element)};
}

std::int64_t largest(const Parts& parts, int n) {
  std::int64_t most = 0;
  for (int r = 0; r < n; ++r) most = std::max(most, parts.count(r));
  return most;
}

}  // namespace

Task ring_reduce_scatter_phase(Job& job, const std::byte* input, Parts parts, std::byte* result) {
  const Combiner combiner = job.combiner();
  const int n = job.size, left = job.peer(-1), right = job.peer(1);
  const std::size_t user = combiner.user(), wire = combiner.wire();
  const auto room = static_cast<std::size_t>(largest(parts, n)) * wire;
  // A slice that arrives in one buffer is forwarded from it during the next step, while the next arrives in the
  // other.
  const Scratch first(room), second(room);
  std::byte* buffers[] = {first.data(), second.data()};
  std::vector<Messages::Ticket> got, sent, sent_before;

  const SegmentRange own = segments_of(parts, left, wire);
  for (int i = 0; i < own.number(); ++i) {
    const std::byte* from = input + static_cast<std::size_t>(own.segment_at(i)) * user;
    if (combiner.widens()) {
      std::byte* widened = buffers[1] + static_cast<std::size_t>(own.segment_at(i) - own.at) * wire;
      combiner.load(widened, from, own.segment_count(i));
      from = widened;
    }
    sent.push_back(job.messages.send(from, static_cast<std::size_t>(own.segment_count(i)) * wire, right));
  }
  for (int step = 0; step < n - 1; ++step) {
    const bool last = step == n - 2;
    const SegmentRange now = segments_of(parts, job.peer(-2 - step), wire);
    std::byte* buffer = buffers[step % 2];
    for (Messages::Ticket ticket : sent_before) co_await job.messages.done(ticket);
    sent_before = std::move(sent);
    sent.clear();
    got.clear();
    for (int i = 0; i < now.number(); ++i) {
      std::byte* to = buffer + static_cast<std::size_t>(now.segment_at(i) - now.at) * wire;
      got.push_back(job.messages.recv(to, static_cast<std::size_t>(now.segment_count(i)) * wire, left));
    }
    for (int i = 0; i < now.number(); ++i) {
      co_await job.messages.done(got[static_cast<std::size_t>(i)]);
      const auto offset = static_cast<std::size_t>(now.segment_at(i) - now.at);
      std::byte* partial = buffer + offset * wire;
      const std::byte* mine = input + static_cast<std::size_t>(now.segment_at(i)) * user;
      if (last) {
        combiner.finish_with(result + offset * user, partial, mine, now.segment_count(i));
      } else {
        combiner.add(partial, partial, mine, now.segment_count(i));
        sent.push_back(job.messages.send(partial, static_cast<std::size_t>(now.segment_count(i)) * wire, right));
      }
    }
  }
  co_await job.messages.all();
}

Task ring_all_gather_phase(Job& job, std::byte* buffer, Parts parts, int complete) {
  const int n = job.size, left = job.peer(-1), right = job.peer(1);
  const std::size_t element = job.element();
  const auto place = [&](const SegmentRange& segments, int i) {
    return buffer + static_cast<std::size_t>(segments.segment_at(i)) * element;
  };
  const bool takes = job.rank != complete, gives = right != complete;
  const SegmentRange own = segments_of(parts, job.rank, element);
  for (int i = 0; gives && i < own.number(); ++i)
    job.messages.send(place(own, i), job.bytes(own.segment_count(i)), right);
  std::vector<Messages::Ticket> got, next;
  const auto post = [&](int step) {
    const SegmentRange segments = segments_of(parts, job.peer(-1 - step), element);
    next.clear();
    for (int i = 0; takes && i < segments.number(); ++i) {
      next.push_back(job.messages.recv(place(segments, i), job.bytes(segments.segment_count(i)), left));
    }
  };
  post(0);
  for (int step = 0; step < n - 1; ++step) {
    got = next;
    if (step + 1 < n - 1) post(step + 1);
    const SegmentRange now = segments_of(parts, job.peer(-1 - step), element);
    for (int i = 0; i < now.number(); ++i) {
      if (takes) co_await job.messages.done(got[static_cast<std::size_t>(i)]);
      if (gives && step < n - 2) job.messages.send(place(now, i), job.bytes(now.segment_count(i)), right);
    }
  }
  co_await job.messages.all();
}

Task ring_all_reduce(Job& job) {
  const Parts parts = Parts::even(job.call.out_count, job.size);
  co_await ring_reduce_scatter_phase(job, job.in(), parts, job.out(parts.at(job.rank)));
  co_await ring_all_gather_phase(job, job.out(), parts);
}

Task ring_reduce_scatter(Job& job) { co_await ring_reduce_scatter_phase(job, job.in(), job.in_slices(), job.out()); }

Task ring_all_gather(Job& job) {
  const Parts parts = job.out_slices();
  copy_bytes(job.out(parts.at(job.rank)), job.in(), job.bytes(job.call.in_count));
  co_await ring_all_gather_phase(job, job.out(), parts);
}

}  // namespace medley::algorithms
