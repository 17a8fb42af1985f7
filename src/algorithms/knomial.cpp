// Binomial and k-nomial trees: broadcast and scatter down, gather up, in log_k(n) rounds. A wide tree has
// fewer rounds and more messages per round: better while latency dominates.
#include "algorithms/knomial.hpp"

#include "algorithms/algorithms.hpp"
#include "algorithms/counted_segments.hpp"

namespace medley::algorithms {
namespace {

Task broadcast_down(Job& job, int radix) {
  const Tree tree(job.rank, job.size, job.call.root, radix);
  const bool root = tree.parent() < 0;
  const std::size_t bytes = job.bytes(root ? job.call.in_count : job.call.out_count);
  const std::byte* data = root ? job.in() : job.out();
  const CountedSegments segments(static_cast<std::int64_t>(bytes), 1);
  const auto bytes_of = [&segments](int i) { return static_cast<std::size_t>(segments.count(i)); };
  std::vector<Messages::Ticket> got;
  for (int i = 0; !root && i < segments.number(); ++i)
    got.push_back(job.messages.recv(job.out() + segments.at(i), bytes_of(i), tree.parent()));
  for (int i = 0; i < segments.number(); ++i) {
    if (!root) co_await job.messages.done(got[static_cast<std::size_t>(i)]);
    for (auto child = tree.children().rbegin(); child != tree.children().rend(); ++child)
      job.messages.send(data + segments.at(i), bytes_of(i), child->rank);
  }
  co_await job.messages.all();
}

Task gather_up(Job& job, int radix) {
  const Tree tree(job.rank, job.size, job.call.root, radix);
  const std::size_t part = job.bytes(job.call.in_count);
  const bool root = tree.parent() < 0;
  const bool straight = root && job.call.root == 0;  // then tree order equals output order
  const Scratch scratch(straight ? 0 : part * static_cast<std::size_t>(tree.size()));
  std::byte* parts = straight ? job.out() : scratch.data();
  copy_bytes(parts, job.in(), part);
  for (const Branch& child : tree.children()) {
    job.messages.recv(parts + static_cast<std::size_t>(child.from - tree.from()) * part,
                      static_cast<std::size_t>(child.size) * part, child.rank);
  }
  co_await job.messages.all();
  if (!root) {
    job.messages.send(parts, static_cast<std::size_t>(tree.size()) * part, tree.parent());
    co_await job.messages.all();
  } else if (!straight) {
    for (int i = 0; i < job.size; ++i) {
      copy_bytes(job.out() + static_cast<std::size_t>(tree.actual(i)) * part,
                 parts + static_cast<std::size_t>(i) * part, part);
    }
  }
}

Task scatter_down(Job& job, int radix) {
  const Tree tree(job.rank, job.size, job.call.root, radix);
  const std::size_t part = job.bytes(job.call.out_count);
  const bool root = tree.parent() < 0;
  const bool straight = root && job.call.root == 0;
  const Scratch scratch(straight ? 0 : part * static_cast<std::size_t>(tree.size()));
  const std::byte* parts = straight ? job.in() : scratch.data();
  if (!root) {
    job.messages.recv(scratch.data(), static_cast<std::size_t>(tree.size()) * part, tree.parent());
    co_await job.messages.all();
  } else if (!straight) {
    for (int i = 0; i < job.size; ++i) {
      copy_bytes(scratch.data() + static_cast<std::size_t>(i) * part,
                 job.in() + static_cast<std::size_t>(tree.actual(i)) * part, part);
    }
  }
  for (auto child = tree.children().rbegin(); child != tree.children().rend(); ++child) {
    job.messages.send(parts + static_cast<std::size_t>(child->from - tree.from()) * part,
                      static_cast<std::size_t>(child->size) * part, child->rank);
  }
  copy_bytes(job.out(), parts, part);
  co_await job.messages.all();
}

}  // namespace

Task binomial_broadcast(Job& job) { return broadcast_down(job, 2); }
Task binomial_gather(Job& job) { return gather_up(job, 2); }
Task binomial_scatter(Job& job) { return scatter_down(job, 2); }
Task knomial_broadcast(Job& job) { return broadcast_down(job, wide); }
Task knomial_gather(Job& job) { return gather_up(job, wide); }
Task knomial_scatter(Job& job) { return scatter_down(job, wide); }

}  // namespace medley::algorithms
