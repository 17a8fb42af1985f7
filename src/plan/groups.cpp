#include "plan/groups.hpp"

#include <algorithm>

namespace medley::plan {
namespace {

/// Experts divide the ranks of a stage anew, in rank order (Megatron-Core's expert rank generator):
/// neighbours shard an expert, the next ones hold other experts, the rest are replicas. With etp = tp, each
/// expert's shards are a tensor group.
std::vector<Count> expert_ranks(const Layout& l, const Coordinates& at, std::string_view group) {
  const Count shards = l.expert_tensor(), stage = Count{l.tp} * l.cp * l.dp;
  const Count first = stage * at.pp, place = (Count{at.dp} * l.cp + at.cp) * l.tp + at.tp;
  const Count shard = place % shards, expert = place / shards % l.ep;
  std::vector<Count> ranks;
  for (Count i = 0; i < stage; ++i) {
    const bool same_shard = i % shards == shard, same_expert = i / shards % l.ep == expert,
               same_replica = i / (shards * l.ep) == place / (shards * l.ep);
    if ((same_shard || group == "etp" || group == "tp_ep") && (same_expert || group == "ep" || group == "tp_ep") &&
        (same_replica || group == "edp"))
      ranks.push_back(first + i);
  }
  return ranks;
}

}  // namespace

std::vector<Count> group_ranks(const Layout& l, Count rank, std::string_view group) {
  const Coordinates at = coordinates(l, rank);
  std::vector<Count> ranks;
  const auto add = [&](int dp, int tp, int pp, int cp) { ranks.push_back(rank_of(l, {dp, tp, pp, cp})); };
  const int replicas = l.dp * l.cp, place = at.dp * l.cp + at.cp;
  const auto replica = [&](int index, int tp, int pp) { add(index / l.cp, tp, pp, index % l.cp); };
  if (group == "tp")
    for (int t = 0; t < l.tp; ++t) add(at.dp, t, at.pp, at.cp);
  else if (group == "pp")
    for (int p = 0; p < l.pp; ++p) add(at.dp, at.tp, p, at.cp);
  else if (group == "cp")
    for (int c = 0; c < l.cp; ++c) add(at.dp, at.tp, at.pp, c);
  else if (group == "dp")
    for (int i = 0; i < replicas; ++i) replica(i, at.tp, at.pp);
  else if (group == "ep" || group == "etp" || group == "edp" || group == "tp_ep") return expert_ranks(l, at, group);
  else if (group == "fsdp")
    for (int i = 0, n = replicas / l.hsdp; i < n; ++i) replica(place / n * n + i, at.tp, at.pp);
  else if (group == "hsdp")
    for (int i = place % (replicas / l.hsdp); i < replicas; i += replicas / l.hsdp) replica(i, at.tp, at.pp);
  else if (group == "model") {
    for (int p = 0; p < l.pp; ++p) {
      for (int t = 0; t < l.tp; ++t) add(at.dp, t, p, at.cp);
    }
  } else if (group == "embedding") {
    add(at.dp, at.tp, 0, at.cp);
    if (l.pp > 1) add(at.dp, at.tp, l.pp - 1, at.cp);
  } else if (group == "world") {
    for (Count r = 0; r < l.world(); ++r) ranks.push_back(r);
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

}  // namespace medley::plan
