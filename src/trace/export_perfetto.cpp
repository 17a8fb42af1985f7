// Chrome's trace format: a process per rank, a track per comm. Overlapping operations get adjacent tracks,
// and the time in which the program waited has its own track.
#include <fmt/format.h>

#include <iterator>

#include "trace/export.hpp"

namespace medley::trace {
namespace {

std::string text_of(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class Writer {
 public:
  explicit Writer(std::ostream& out) : out_(out) { out_ << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"; }
  ~Writer() { out_ << lines_ << "\n]}\n"; }
  void add(const std::string& event) {
    if (!std::exchange(first_, false)) lines_ += ",\n";
    lines_ += event;
    if (lines_.size() < (1 << 20)) return;
    out_ << lines_;
    lines_.clear();
  }
  void name(const char* what, int pid, int tid, const std::string& text) {
    add(fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", what, pid, tid,
                    text_of(text)));
  }

 private:
  std::ostream& out_;
  std::string lines_;
  bool first_ = true;
};

/// Tracks of one comm on one rank: an operation takes the first that is free.
class Tracks {
 public:
  std::size_t take(double begin, double end) {
    for (std::size_t i = 0; i < free_from_.size(); ++i) {
      if (free_from_[i] > begin) continue;
      free_from_[i] = end;
      return i;
    }
    free_from_.push_back(end);
    return free_from_.size() - 1;
  }

 private:
  std::vector<double> free_from_;
};

constexpr int tracks_per_group = 1000, waiting_track = 0;

}  // namespace

void write_perfetto(const Trace& trace, std::ostream& out) {
  Writer writer(out);
  for (const RankTrace& rank : trace.ranks) {
    const int pid = rank.rank + 1'000'000 * (rank.context - 1);
    writer.name("process_name", pid, 0,
                fmt::format("rank {} on {}{}", rank.rank, rank.host, rank.context > 1 ? ", second context" : ""));
    writer.name("thread_name", pid, waiting_track, "program waits");
    std::map<std::uint32_t, Tracks> tracks;
    std::map<int, bool> named;
    double end_of_trace = 0, waits_until = 0;
    rank.for_each([&](const Event& e) { end_of_trace = std::max({end_of_trace, e.issued, e.completed}); });
    rank.for_each([&](const Event& e) {
      if (e.issued < 0) return;
      const double end = e.completed >= 0 ? e.completed : end_of_trace;
      const double start = e.on_device ? e.started : e.issued;
      const auto track =
          static_cast<int>(std::min<std::size_t>(tracks[e.group].take(start, end), tracks_per_group - 1));
      const int tid = 1 + static_cast<int>(e.group) * tracks_per_group + track;
      if (!std::exchange(named[tid], true)) writer.name("thread_name", pid, tid, trace.groups[e.group].name);
      writer.add(fmt::format(
          R"({{"ph":"X","name":"{}","cat":"comm","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{"bytes":{},"group_size":{},"sequence":{},"dtype":"{}","state":"{}","scope":{},"backend":{},"algorithm":{},"issued_us":{:.3f},"exposed_us":{}}}}})",
          name(e.op), pid, tid, start / 1e3, (end - start) / 1e3, e.bytes, trace.groups[e.group].size, e.sequence,
          name(e.dtype), name(e.state), text_of(trace.names[e.scope]), text_of(trace.names[e.backend]),
          text_of(trace.names[e.algorithm]), e.issued / 1e3,
          trace.waits_known && e.exposed_known ? fmt::format("{:.3f}", e.exposed / 1e3) : "null"));
      const double begin = std::max(e.completed - e.exposed, waits_until);  // the program may wait for several at once
      if (e.exposed <= 0 || e.completed <= begin) return;
      waits_until = e.completed;
      writer.add(fmt::format(R"({{"ph":"X","name":"wait {}","cat":"wait","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f}}})",
                             name(e.op), pid, waiting_track, begin / 1e3, (e.completed - begin) / 1e3));
    });
  }
}

}  // namespace medley::trace
