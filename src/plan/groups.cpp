#include "plan/groups.hpp"

#include <algorithm>

namespace medley::plan {

std::vector<Count> group_ranks(const Layout& l, Count rank, std::string_view group) {
  const Coordinates at = coordinates(l, rank);
  std::vector<Count> ranks;
  const auto add = [&](int dp, int tp, int pp, int cp) { ranks.push_back(rank_of(l, {dp, tp, pp, cp})); };
  // Expert groups are taken from the replicas in rank order: `ep` neighbours hold different experts.
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
  else if (group == "ep")
    for (int i = 0; i < l.ep; ++i) replica(place / l.ep * l.ep + i, at.tp, at.pp);
  else if (group == "edp")
    for (int i = place % l.ep; i < replicas; i += l.ep) replica(i, at.tp, at.pp);
  else if (group == "fsdp")
    for (int i = 0, n = replicas / l.hsdp; i < n; ++i) replica(place / n * n + i, at.tp, at.pp);
  else if (group == "hsdp")
    for (int i = place % (replicas / l.hsdp); i < replicas; i += replicas / l.hsdp) replica(i, at.tp, at.pp);
  else if (group == "tp_ep") {
    for (int i = 0; i < l.ep; ++i) {
      for (int t = 0; t < l.tp; ++t) replica(place / l.ep * l.ep + i, t, at.pp);
    }
  } else if (group == "model") {
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
