// Tokens choose their experts, so the parts of an all_to_all differ from the plan's even share. That does not allow any
// size: what all ranks of the group send must add up to the plan's total, in whole rows of the model's width, and each
// routing of the forward pass must occur as often in the backward pass, which sends the same way back.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "reconcile/explain.hpp"

namespace medley::reconcile {
namespace {

/// The all_to_alls of one group on one rank, planned and observed, in order.
struct Exchanges {
  std::vector<std::uint32_t> expected, observed;
};

bool is_exchange(const Catalog& catalog, const Run& run, std::uint32_t group) {
  return catalog[run.kind].op == Op::all_to_all && catalog[run.kind].group == group && run.count == 1;
}

Exchanges exchanges_of(const Case& c, const Catalog& catalog, std::uint32_t group) {
  Exchanges out;
  const auto gather = [&](const Sequence& sequence, std::vector<std::uint32_t>& into) {
    for (const Run& run : sequence) {
      if (is_exchange(catalog, run, group)) into.push_back(run.kind);
    }
  };
  gather(c.expected, out.expected);
  gather(c.variant->sequence, out.observed);
  return out;
}

bool only_bytes_differ(const Catalog& catalog, std::uint32_t expected, std::uint32_t observed) {
  const auto fields = catalog.differing(expected, observed);
  return fields.empty() || fields == std::vector<Field>{Field::bytes};
}

/// How often one routing occurs in each pass.
struct Occurrences {
  std::size_t forward = 0, recompute = 0, backward = 0, unknown = 0;
  void add(const Kind& kind) {
    const std::string_view phase = phase_name(kind.phase);
    ++(phase == "forward" ? forward : phase == "recompute" ? recompute : phase == "backward" ? backward : unknown);
  }
  /// Where the phase is not known, each of a pair repeats the other.
  bool repeated() const {
    if (unknown > 0) return forward + recompute + backward == 0 && unknown % 2 == 0;
    return forward > 0 && backward == forward && recompute <= forward;
  }
};

/// Whether the exchanges of one group in one step are the plan's with tokens routed differently. Sets `rows` to the
/// rows this predicts and `parameters` to its free ones.
bool routed_otherwise(const Catalog& catalog, const std::vector<Exchanges>& ranks, std::int64_t unit,
                      std::int64_t& rows, std::int64_t& parameters) {
  const std::size_t n = ranks.size(), exchanges = ranks.front().expected.size();
  std::map<std::vector<std::int64_t>, Occurrences> routings;
  std::size_t differing = 0;
  for (std::size_t i = 0; i < exchanges; ++i) {
    std::int64_t planned = 0, sent = 0;
    bool differs = false;
    std::vector<std::int64_t> bytes;
    for (const Exchanges& rank : ranks) {
      if (rank.expected.size() != exchanges || rank.observed.size() != exchanges) return false;
      if (!only_bytes_differ(catalog, rank.expected[i], rank.observed[i])) return false;
      const std::int64_t e = catalog[rank.expected[i]].bytes, o = catalog[rank.observed[i]].bytes;
      planned += e;
      sent += o;
      differs = differs || e != o;
      if (o % unit != 0) return false;
      bytes.push_back(o);
    }
    if (!differs) continue;
    if (planned != sent) return false;
    ++differing;
    routings[bytes].add(catalog[ranks.front().observed[i]]);
  }
  if (differing == 0) return false;
  if (!std::all_of(routings.begin(), routings.end(), [](const auto& r) { return r.second.repeated(); })) return false;
  rows = static_cast<std::int64_t>(differing * n);
  parameters = static_cast<std::int64_t>(routings.size() * (n - 1));
  return rows > parameters;
}

}  // namespace

namespace {

/// Group and step.
using Place = std::pair<std::uint32_t, std::size_t>;

/// The group of a line about an all_to_all that no other cause explains; 0: no such line.
std::uint32_t open_exchange(const Line& line, const Catalog& catalog) {
  const Kind& kind = catalog[line.observed_count > 0 ? line.observed : line.expected];
  const bool open = line.differs() && line.cause.empty() && line.verdict != Verdict::order;
  return open && kind.op == Op::all_to_all ? kind.group : 0;
}

/// What every member of the group exchanged in the step; empty unless all of them were traced.
std::vector<Exchanges> of_all_members(const std::vector<Case>& cases, const Catalog& catalog, Place place) {
  std::vector<Exchanges> ranks;
  const std::vector<int>& members = catalog.group_of_number(place.first).ranks;
  for (const Case& c : cases) {
    const auto& steps = c.variant->steps;
    if (std::find(members.begin(), members.end(), c.rank) != members.end() &&
        std::find(steps.begin(), steps.end(), place.second) != steps.end())
      ranks.push_back(exchanges_of(c, catalog, place.first));
  }
  return ranks.size() == members.size() ? ranks : std::vector<Exchanges>{};
}

/// The exchanges that were routed otherwise take part in the order, too: the plan with their observed sizes must have
/// the observed order.
void judge_routed_order(const Catalog& catalog, const std::map<Place, bool>& holds, const std::string& cause, Case& c) {
  if (!c.ordered) return;
  Sequence planned = c.expected;
  for (const auto& [place, routed] : holds) {
    const auto& steps = c.variant->steps;
    if (!routed || std::find(steps.begin(), steps.end(), place.second) == steps.end()) continue;
    const Exchanges exchanges = exchanges_of(c, catalog, place.first);
    std::size_t next = 0;
    for (Run& run : planned) {
      if (is_exchange(catalog, run, place.first) && next < exchanges.observed.size())
        run.kind = exchanges.observed[next++];
    }
  }
  judge_order(compare(catalog, planned, c.variant->sequence, true), cause, *c.result);
}

}  // namespace

void explain_by_routing(std::int64_t row_bytes, std::vector<Case>& cases, Report& report) {
  std::map<Place, bool> holds;
  Explanation explanation{
      "tokens are routed unevenly: over all ranks the bytes are the plan's, and the backward pass repeats "
      "them",
      0, 0};
  for (const Case& c : cases) {
    for (const Line& line : c.result->lines) {
      const std::uint32_t group = open_exchange(line, report.catalog);
      for (const std::size_t step : group != 0 ? c.variant->steps : std::vector<std::size_t>{}) {
        if (holds.contains({group, step})) continue;
        const auto ranks = of_all_members(cases, report.catalog, {group, step});
        std::int64_t rows = 0, parameters = 0;
        holds[{group, step}] =
            !ranks.empty() &&
            routed_otherwise(report.catalog, ranks, std::max<std::int64_t>(1, row_bytes), rows, parameters);
        if (!holds[{group, step}]) continue;
        explanation.predicted += rows;
        explanation.parameters += static_cast<int>(parameters);
      }
    }
  }
  if (explanation.predicted == 0) return;
  for (Case& c : cases) {
    for (Line& line : c.result->lines) {
      const std::uint32_t group = open_exchange(line, report.catalog);
      const bool all =
          group != 0 && std::all_of(c.variant->steps.begin(), c.variant->steps.end(), [&](std::size_t step) {
            return holds[{group, step}];
          });
      if (all) line.cause = explanation.sentence;
    }
    judge_routed_order(report.catalog, holds, explanation.sentence, c);
  }
  report.explanations.push_back(std::move(explanation));
}

}  // namespace medley::reconcile
