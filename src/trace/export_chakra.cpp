// Chakra execution traces (MLCommons, schema 0.0.4), which network simulators replay: one file per rank of
// protobuf messages, each preceded by its length. The time between a program's calls becomes computation
// nodes, so that a replay keeps overlaps and waits.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <medley/error.hpp>

#include "base/v_collectives.hpp"
#include "base/write_file.hpp"
#include "trace/chakra_nodes.hpp"
#include "trace/export.hpp"

namespace medley::trace {
namespace {

namespace fs = std::filesystem;

constexpr double least_computation = 1000;  // ns: the schema counts in microseconds

/// CollectiveCommType of the schema, which does not distinguish v-collectives.
std::int64_t chakra_collective(Op op) {
  switch (core::equal_counts_form(op)) {
    case Op::all_reduce: return 0;
    case Op::reduce: return 1;
    case Op::all_gather: return 2;
    case Op::gather: return 3;
    case Op::scatter: return 4;
    case Op::broadcast: return 5;
    case Op::all_to_all: return 6;
    case Op::reduce_scatter: return 7;
    default: return 9;  // barrier
  }
}

/// Chakra counts a rank's input: the shard of an all_gather.
std::int64_t given_bytes(const Event& event, const Group& group) {
  const bool shard = event.op == Op::all_gather || event.op == Op::all_gatherv || event.op == Op::gather;
  return shard && group.size > 0 ? event.bytes / group.size : event.bytes;
}

/// One rank's calls and waits in order of time, with the computation between them.
class ChakraRank {
 public:
  ChakraRank(const Trace& trace, const RankTrace& rank, std::ostream& out) : trace_(trace), rank_(rank), nodes_(out) {}

  void write() {
    rank_.for_each([&](const Event& event) {
      if (event.issued < 0) return;
      const std::size_t i = calls_.size();
      calls_.push_back({event, 0, {}});
      moments_.push_back({event.issued, 2 * i});
      if (event.exposed > 0 && event.completed >= 0) moments_.push_back({event.completed, 2 * i + 1});
    });
    std::sort(moments_.begin(), moments_.end());
    if (!moments_.empty()) free_since_ = moments_.front().first;
    for (const auto& [time, what] : moments_) what % 2 == 0 ? issue(calls_[what / 2]) : come_back(calls_[what / 2]);
  }

 private:
  struct Call {
    Event event;
    std::uint64_t node;
    std::vector<std::uint64_t> after;
  };

  void compute_until(double time) {
    if (time - free_since_ < least_computation) return;
    const std::uint64_t id = nodes_.begin("compute", ChakraNodes::computation, free_since_, time - free_since_, after_);
    nodes_.attribute("is_cpu_op", false);
    nodes_.attribute("num_ops", std::int64_t{0});
    nodes_.end();
    after_ = {id};
    free_since_ = time;
  }

  void issue(Call& call) {
    const Event& e = call.event;
    compute_until(e.issued);
    const std::string& scope = trace_.names[e.scope];
    const std::string text = scope.empty() ? std::string(name(e.op)) : fmt::format("{} {}", scope, name(e.op));
    const auto kind = e.op == Op::send   ? ChakraNodes::send
                      : e.op == Op::recv ? ChakraNodes::receive
                                         : ChakraNodes::collective;
    call.after = after_;
    call.node = nodes_.begin(text, kind, e.issued, e.duration(), after_);
    nodes_.attribute("is_cpu_op", false);
    nodes_.attribute("comm_size", given_bytes(e, trace_.groups[e.group]));
    nodes_.attribute("pg_name", std::to_string(e.group));
    if (is_collective(e.op)) {
      nodes_.attribute("comm_type", chakra_collective(e.op));
      if (rooted(e.op) && e.peer >= 0) nodes_.attribute("root_rank", e.peer);
    } else {
      const std::int64_t own = rank_.rank;
      nodes_.attribute("comm_src", e.op == Op::send ? own : e.peer);
      nodes_.attribute("comm_dst", e.op == Op::send ? e.peer : own);
      nodes_.attribute("comm_tag", static_cast<std::int64_t>(e.group));  // matching is per comm
    }
    nodes_.end();
  }

  void come_back(const Call& call) {
    compute_until(call.event.completed - call.event.exposed);
    // Depending on the call implies depending on its own dependencies.
    std::erase_if(after_, [&](std::uint64_t id) {
      return std::find(call.after.begin(), call.after.end(), id) != call.after.end();
    });
    after_.push_back(call.node);
    free_since_ = std::max(free_since_, call.event.completed);
  }

  const Trace& trace_;
  const RankTrace& rank_;
  ChakraNodes nodes_;
  std::vector<Call> calls_;
  std::vector<std::pair<double, std::size_t>> moments_;  ///< twice the call's number, plus one for its end
  std::vector<std::uint64_t> after_;                     ///< the next node depends on these nodes
  double free_since_ = 0;                                ///< the program has been computing since then
};

}  // namespace

void write_chakra(const Trace& trace, const std::string& folder) {
  if (!trace.timed)
    throw Error(ErrorKind::invalid,
                fmt::format("{} has sums without times: Chakra needs every operation with its time", trace.source));
  std::error_code error;
  fs::create_directories(folder, error);
  for (const RankTrace& rank : trace.ranks) {
    if (rank.context > 1) continue;  // a second context of a process has its own ranks
    core::write_file(fs::path(folder) / fmt::format("medley.{}.et", rank.rank),
                     [&](std::ostream& out) { ChakraRank(trace, rank, out).write(); });
  }
  nlohmann::ordered_json groups;
  for (std::size_t i = 0; i < trace.groups.size(); ++i) {
    if (!trace.groups[i].ranks.empty()) groups[std::to_string(i)] = trace.groups[i].ranks;
  }
  core::write_file(fs::path(folder) / "comm_group.json", [&](std::ostream& out) { out << groups.dump(1) << "\n"; });
}

}  // namespace medley::trace
