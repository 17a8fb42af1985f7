#include "trace/infer_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/ranks_text.hpp"
#include "base/v_collectives.hpp"

namespace medley::trace {
namespace {

/// What one rank sends on one group in a step.
struct Traffic {
  std::uint32_t group = 0;
  std::map<Op, std::int64_t> count;
  std::map<Op, std::int64_t> bytes;
  std::map<std::int64_t, std::int64_t> sizes;  ///< of reductions and gathers: the number of each size
  std::int64_t gathers_before_scatter = -1;    ///< all_gathers before the first reduce_scatter
  std::int64_t of(Op op) const {
    const auto found = count.find(op);
    return found == count.end() ? 0 : found->second;
  }
  std::int64_t all() const { return of(Op::all_reduce) + of(Op::all_gather) + of(Op::reduce_scatter) + of(Op::reduce); }
  std::int64_t most_common() const {
    std::int64_t most = 0;
    for (const auto& [size, times] : sizes) most = std::max(most, times);
    return most;
  }
};

struct Step0 {
  std::vector<Traffic> groups;
  std::set<int> peers;
};

Step0 traffic_of(const Trace& trace, const RankTrace& rank) {
  const Steps steps = find_steps(trace, rank);
  Step0 out;
  std::map<std::uint32_t, Traffic> groups;
  // A step in the middle: the first steps differ in many frameworks.
  const Step step = steps.steps.empty() ? Step{0, rank.events->size()} : steps.steps[steps.steps.size() / 2];
  Event event;
  for (std::size_t i = step.begin; i < step.end; ++i) {
    if (!rank.events->read(i, event) || trace.names[event.scope] == step_scope) continue;
    const Op op = core::equal_counts_form(event.op);
    if (!is_collective(op)) {
      if (event.peer >= 0) out.peers.insert(static_cast<int>(event.peer));
      continue;
    }
    if (trace.groups[event.group].size < 2 || op == Op::barrier || event.bytes <= 64) continue;
    Traffic& traffic = groups[event.group];
    traffic.group = event.group;
    if (op == Op::reduce_scatter && traffic.gathers_before_scatter < 0)
      traffic.gathers_before_scatter = traffic.of(Op::all_gather);
    traffic.count[op] += event.count;
    traffic.bytes[op] += event.bytes * event.count;
    if (op == Op::all_reduce || op == Op::all_gather || op == Op::reduce_scatter || op == Op::reduce)
      traffic.sizes[event.bytes] += event.count;
  }
  for (auto& [number, traffic] : groups) out.groups.push_back(std::move(traffic));
  return out;
}

std::string group_words(const Trace& trace, std::uint32_t number) {
  const Group& group = trace.groups[number];
  return group.ranks.empty() || group.ranks.size() > 8
             ? fmt::format("{} ({} ranks)", group.name, group.size)
             : fmt::format("{} ({})", group.name, core::ranks_text(group.ranks));
}

/// Activations of all layers have one size and are exchanged in both passes; gradients have many sizes.
bool looks_like_tensor_parallelism(const Traffic& t) {
  const bool same = t.all() >= 6 && t.most_common() * 10 >= t.all() * 6;
  if (t.of(Op::reduce_scatter) == 0) return same && t.of(Op::all_reduce) > t.of(Op::all_gather);
  // All forward parameters are gathered before the first gradient is scattered.
  return same && t.gathers_before_scatter * 4 < t.of(Op::all_gather);
}

void infer_data_parallelism(const Trace& trace, const Traffic& t, InferredLayout& out) {
  const std::string words = group_words(trace, t.group);
  out.dp = trace.groups[t.group].size;
  const std::int64_t gathers = t.of(Op::all_gather), scatters = t.of(Op::reduce_scatter),
                     reductions = t.of(Op::all_reduce) + t.of(Op::reduce);
  if (gathers == 0) {
    out.evidence.push_back(
        fmt::format("dp={}: {} carries {} reductions of {} sizes and gathers nothing: replicas average gradients",
                    out.dp, words, reductions + scatters, t.sizes.size()));
    return;
  }
  const auto bytes = [&](Op op) {
    const auto found = t.bytes.find(op);
    return found == t.bytes.end() ? std::int64_t{0} : found->second;
  };
  const bool through = t.gathers_before_scatter > 0 && t.gathers_before_scatter * 4 >= gathers;
  out.zero = through ? 3 : 1;
  out.evidence.push_back(
      through ? fmt::format("dp={},zero=3: {} gathers {} B of parameters, {} times before the first gradient is "
                            "scattered ({} B)",
                            out.dp, words, bytes(Op::all_gather), t.gathers_before_scatter, bytes(Op::reduce_scatter))
              : fmt::format("dp={},zero=1 (or 2, which sends the same): {} reduces {} B of gradients and gathers "
                            "{} B once they are applied",
                            out.dp, words, bytes(Op::all_reduce) + bytes(Op::reduce_scatter) + bytes(Op::reduce),
                            bytes(Op::all_gather)));
}

/// Ranks that exchange messages are stages of one pipeline.
void infer_pipeline(const std::map<int, std::set<int>>& peers, InferredLayout& out) {
  if (peers.empty()) return;
  std::set<int> chain, next{peers.begin()->first};
  while (!next.empty()) {
    const int rank = *next.begin();
    next.erase(next.begin());
    if (!chain.insert(rank).second) continue;
    if (const auto found = peers.find(rank); found != peers.end())
      for (const int peer : found->second)
        if (!chain.contains(peer)) next.insert(peer);
  }
  if (chain.size() < 2) return;
  out.pp = static_cast<int>(chain.size());
  out.evidence.push_back(
      fmt::format("pp={}: {} pass messages to each other", out.pp, core::ranks_text({chain.begin(), chain.end()})));
}

}  // namespace

std::string InferredLayout::text() const {
  if (!complete) return "";
  std::string out;
  const auto add = [&](const char* key, int value) {
    if (value > 1) out += fmt::format("{}{}={}", out.empty() ? "" : ",", key, value);
  };
  add("dp", dp);
  add("tp", tp);
  add("pp", pp);
  add("ep", ep);
  if (sp) out += ",sp=on";
  if (zero > 0) out += fmt::format(",zero={}", zero);
  return out;
}

InferredLayout infer_layout(const Trace& trace) {
  InferredLayout out;
  if (trace.ranks.empty()) return out;
  std::map<int, std::set<int>> peers;
  for (std::size_t i = 0; i < trace.ranks.size() && i < 64; ++i) {
    const Step0 step = traffic_of(trace, trace.ranks[i]);
    if (!step.peers.empty()) peers[trace.ranks[i].rank] = step.peers;
  }
  infer_pipeline(peers, out);
  Step0 step = traffic_of(trace, trace.ranks.front());
  for (const Traffic& t : step.groups) {
    if (t.of(Op::all_to_all) < 2) continue;
    out.ep = trace.groups[t.group].size;
    out.evidence.push_back(
        fmt::format("ep={}: {} carries {} all_to_alls", out.ep, group_words(trace, t.group), t.of(Op::all_to_all)));
  }
  std::erase_if(step.groups, [](const Traffic& t) { return t.all() == 0; });
  // If several groups could be the tensor group, it is the one with the most operations.
  std::stable_sort(step.groups.begin(), step.groups.end(),
                   [](const Traffic& a, const Traffic& b) { return a.all() > b.all(); });
  if (!step.groups.empty() && looks_like_tensor_parallelism(step.groups.front())) {
    const Traffic& t = step.groups.front();
    out.tp = trace.groups[t.group].size;
    out.sp = t.of(Op::reduce_scatter) > 0;
    out.evidence.push_back(
        fmt::format("tp={}{}: {} carries {} operations, {} of them of one size, from the start of the step on", out.tp,
                    out.sp ? ",sp=on" : "", group_words(trace, t.group), t.all(), t.most_common()));
    step.groups.erase(step.groups.begin());
  }
  // The gradients take the group with the most bytes; with experts, whose gradients have their own groups,
  // the group with the most ranks.
  const auto volume = [](const Traffic& t) {
    std::int64_t sum = 0;
    for (const auto& [op, bytes] : t.bytes) sum += op == Op::all_to_all ? 0 : bytes;
    return sum;
  };
  const auto largest =
      std::max_element(step.groups.begin(), step.groups.end(), [&](const Traffic& a, const Traffic& b) {
        const int n = out.ep > 1 ? trace.groups[a.group].size : 0, m = out.ep > 1 ? trace.groups[b.group].size : 0;
        return std::pair(n, volume(a)) < std::pair(m, volume(b));
      });
  if (largest != step.groups.end()) infer_data_parallelism(trace, *largest, out);
  out.complete = out.dp * out.tp * out.pp == std::max(trace.world, 1);
  return out;
}

}  // namespace medley::trace
