// Reduction up a binomial or k-nomial tree, in segments so that combining overlaps arrival. Children are
// combined in a fixed order, the smallest subtree first: |error| <= (k-1)·ceil(log_k n)·u·Σ|x|, u = 2^-53 for
// f64 and 2^-24 for f32, f16 and bf16, the last two plus one rounding of the result.
#include "algorithms/algorithms.hpp"
#include "algorithms/counted_segments.hpp"
#include "algorithms/knomial.hpp"

namespace medley::algorithms {
namespace {

/// One segment of every child's partial result, in adjacent buffers.
class Arrivals {
 public:
  Arrivals(Job& job, const Tree& tree, const Combiner& combiner, std::int64_t most)
      : job_(job),
        tree_(tree),
        combiner_(combiner),
        most_(static_cast<std::size_t>(most)),
        room_(most_ * combiner.wire() * tree.children().size()) {}
  void post(std::int64_t count) {
    tickets_.clear();
    for (std::size_t c = 0; c < tree_.children().size(); ++c) {
      const Branch& child = tree_.children()[c];
      tickets_.push_back(job_.messages.recv(place(c), static_cast<std::size_t>(count) * element(child), child.rank));
    }
  }
  Messages::Ticket ticket(std::size_t child) const { return tickets_[child]; }
  void combine_into(std::byte* partial, std::size_t c, std::int64_t count) const {
    const bool plain = tree_.children()[c].size == 1;  // a leaf sends its input unconverted
    plain ? combiner_.add(partial, partial, place(c), count) : combiner_.combine(partial, partial, place(c), count);
  }

 private:
  std::size_t element(const Branch& child) const { return child.size == 1 ? combiner_.user() : combiner_.wire(); }
  std::byte* place(std::size_t c) const { return room_.data() + c * most_ * combiner_.wire(); }
  Job& job_;
  const Tree& tree_;
  const Combiner& combiner_;
  std::size_t most_;
  Scratch room_;
  std::vector<Messages::Ticket> tickets_;
};

Task reduce_up(Job& job, int radix) {
  const Tree tree(job.rank, job.size, job.call.root, radix);
  const Combiner combiner = job.combiner();
  const bool root = tree.parent() < 0;
  const CountedSegments segments(job.call.in_count, combiner.wire());
  const std::int64_t most = segments.longest();
  if (tree.size() == 1) {
    for (int i = 0; i < segments.number(); ++i)
      job.messages.send(job.in(segments.at(i)), job.bytes(segments.count(i)), tree.parent());
    co_await job.messages.all();
    co_return;
  }
  // Two of each: while one segment is combined, the next arrives and the last one is sent.
  Arrivals arrivals[] = {{job, tree, combiner, most}, {job, tree, combiner, most}};
  const Scratch partials(2 * static_cast<std::size_t>(most) * combiner.wire());
  Messages::Ticket sent[] = {0, 0};
  if (segments.number() > 0) arrivals[0].post(segments.count(0));
  for (int i = 0; i < segments.number(); ++i) {
    const std::int64_t at = segments.at(i), now = segments.count(i);
    if (i + 1 < segments.number()) arrivals[(i + 1) % 2].post(segments.count(i + 1));
    std::byte* partial = partials.data() + static_cast<std::size_t>(i % 2 * most) * combiner.wire();
    co_await job.messages.done(sent[i % 2]);
    combiner.load(partial, job.in(at), now);
    for (std::size_t c = 0; c < tree.children().size(); ++c) {
      co_await job.messages.done(arrivals[i % 2].ticket(c));
      arrivals[i % 2].combine_into(partial, c, now);
    }
    if (root) {
      combiner.finish(job.out(at), partial, now);
    } else {
      sent[i % 2] = job.messages.send(partial, static_cast<std::size_t>(now) * combiner.wire(), tree.parent());
    }
  }
  co_await job.messages.all();
}

}  // namespace

Task binomial_reduce(Job& job) { return reduce_up(job, 2); }
Task knomial_reduce(Job& job) { return reduce_up(job, wide); }

}  // namespace medley::algorithms
