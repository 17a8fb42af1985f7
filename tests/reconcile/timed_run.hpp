// A run in memory with chosen times, for tests of expected against observed time.
#pragma once
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trace/trace.hpp"

namespace medley::reconcile::test {

/// A run in memory, to which operations are added in order of issue. Times in µs.
class TimedRun {
 public:
  explicit TimedRun(int world, std::string host = "") {
    trace.source = "made";
    trace.world = world;
    for (int rank = 0; rank < world; ++rank) {
      trace::RankTrace one;
      one.rank = rank;
      one.host = host;
      one.events = std::make_shared<trace::EventList>();
      trace.ranks.push_back(one);
    }
  }
  trace::Event& add(int rank, Op op, std::vector<int> group, std::int64_t bytes, double issued, double started,
                    double completed) {
    auto& list = static_cast<trace::EventList&>(*trace.ranks[static_cast<std::size_t>(rank)].events).events;
    trace::Event event;
    event.op = op;
    event.dtype = DType::bf16;
    event.bytes = bytes;
    event.group = trace.group({"dp", group, static_cast<int>(group.size())});
    event.scope = trace.name("forward/weights");
    event.sequence = ++sequences_[{rank, event.group}];
    event.matched = is_collective(op);
    event.issued = issued * 1e3;
    event.started = started * 1e3;
    event.completed = completed * 1e3;
    event.exposed = (completed - issued) * 1e3;
    list.push_back(event);
    ++trace.ranks[static_cast<std::size_t>(rank)].issued;
    return list.back();
  }
  /// Asynchronous: the program waits from `waited` on.
  trace::Event& add_async(int rank, Op op, std::vector<int> group, std::int64_t bytes, double issued, double started,
                          double waited, double completed) {
    trace::Event& event = add(rank, op, std::move(group), bytes, issued, started, completed);
    event.async = true;
    event.exposed = std::max(0.0, completed - waited) * 1e3;
    return event;
  }
  trace::Trace trace;

 private:
  std::map<std::pair<int, std::uint32_t>, std::uint64_t> sequences_;
};

}  // namespace medley::reconcile::test
