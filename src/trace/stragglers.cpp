#include "trace/stragglers.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace medley::trace {
namespace {

// Some rank is always last. A straggler is last more often than chance makes it: e^-11, one in 60,000.
constexpr double least_evidence = 11;
// And it costs the others time: this share of it, and no less than this in all. A rank that the system did
// not run for some milliseconds is no reason to end a job.
constexpr double least_loss = 0.02, least_loss_ns = 0.1e9;
// Collectives are judged whose last rank is later than this. A rank may be late by 50 µs at each of them, or
// by a second once a step; the noise of the small ones must not hide the large ones.
constexpr double scales_ns[] = {20e3, 200e3, 2e6, 20e6, 200e6, 2e9};
// A collective below the scale weighs this against the end of a late period, so that one of 25 may be late,
// but a single hiccup long ago is no beginning.
constexpr double weight_of_others = 0.02;

/// When the ranks arrived at one collective.
struct Arrivals {
  double second_last = 0, last = 0;
  double excused = 0;  ///< of the last rank: see Waits
  int last_rank = -1, ranks = 0;
  void add(double time, int rank, double excuse) {
    if (ranks++ == 0 || time >= last) {
      second_last = ranks == 1 ? time : last;
      last = time;
      last_rank = rank;
      excused = excuse;
    } else {
      second_last = ranks == 2 ? time : std::max(second_last, time);
    }
  }
  double lateness() const { return std::max(0.0, last - second_last - excused); }
};

/// What one rank waited for other groups. A rank that arrives late because it waited elsewhere is a victim of
/// the straggler there, so that time is excused.
struct Waits {
  double all = 0;
  std::map<std::uint32_t, double> of_group,
      at_last;  ///< `at_last`: elsewhere, when it last arrived at the group
  double since_last(std::uint32_t group) {
    const double elsewhere = all - of_group[group];
    const auto [before, fresh] = at_last.emplace(group, elsewhere);
    const double out = fresh ? 0 : elsewhere - before->second;
    before->second = elsewhere;
    return out;
  }
  void add(std::uint32_t group, double exposed) {
    all += exposed;
    of_group[group] += exposed;
  }
};

using Collectives = std::map<std::uint64_t, Arrivals>;

std::map<std::uint32_t, Collectives> arrivals_of(const Trace& trace) {
  std::map<std::uint32_t, Collectives> groups;
  for (const RankTrace& rank : trace.ranks) {
    Waits waits;
    rank.for_each([&](const Event& e) {
      if (e.matched && e.issued >= 0) groups[e.group][e.sequence].add(e.issued, rank.rank, waits.since_last(e.group));
      waits.add(e.group, e.exposed);
    });
  }
  return groups;
}

/// How surely `last` of `all` is no chance among `ranks` equal ranks: Chernoff's bound on a binomial tail, as
/// -ln.
double evidence(std::size_t last, std::size_t all, int ranks) {
  const double p = 1.0 / ranks, q = static_cast<double>(last) / static_cast<double>(all);
  if (q <= p) return 0;
  const double rest = q < 1 ? (1 - q) * std::log((1 - q) / (1 - p)) : 0;
  return static_cast<double>(all) * (q * std::log(q / p) + rest);
}

/// Whether `since` collectives in time are many beside the usual distance of two late ones.
bool recovered(std::size_t range, std::size_t late, std::size_t since) { return since > 8 + 4 * (range / late); }

/// The rank's lateness since the moment from which on it is last most clearly: the suffix in which it exceeds
/// `share` by the most collectives. So a rank that became slow a second ago is found now, not when half of
/// the window is past.
Straggler judged(const std::vector<const Arrivals*>& whole, int rank, double share, double scale) {
  Straggler out;
  out.rank = rank;
  double sum = 0, best = 0;
  std::size_t begin = whole.size();
  for (std::size_t i = whole.size(); i-- > 0;) {
    const bool counts = whole[i]->lateness() >= scale, last = counts && whole[i]->last_rank == rank;
    sum += last ? 1 - share : counts ? -share : -weight_of_others;
    if (last && sum >= best) best = sum, begin = i;
  }
  std::vector<double> by;
  std::size_t end = begin;  // after the last one that waited for it
  for (std::size_t i = begin; i < whole.size(); ++i) {
    if (whole[i]->lateness() < scale) continue;
    ++out.collectives;
    if (whole[i]->last_rank != rank) continue;
    by.push_back(whole[i]->lateness());
    end = i + 1;
  }
  if (by.empty() || recovered(end - begin, by.size(), whole.size() - end)) return out;
  out.last = by.size();
  for (const double ns : by) out.sum_ns += ns;
  std::nth_element(by.begin(), by.begin() + static_cast<std::ptrdiff_t>(by.size() / 2), by.end());
  out.median_ns = by[by.size() / 2];
  out.since_ns = whole[begin]->last;
  return out;
}

/// The scale at which the rank costs the most, of those at which it is surely a straggler.
std::optional<Straggler> straggler(const std::vector<const Arrivals*>& whole, int rank, int ranks, double now_ns,
                                   double share, double clock_error) {
  std::optional<Straggler> out;
  for (const double scale : scales_ns) {
    const Straggler found = judged(whole, rank, share, std::max(scale, clock_error));
    const bool sure = found.last > 0 && evidence(found.last, found.collectives, ranks) >= least_evidence;
    const bool costly = found.sum_ns >= std::max(least_loss_ns, least_loss * (now_ns - found.since_ns));
    if (sure && costly && (!out || found.sum_ns > out->sum_ns)) out = found;
  }
  return out;
}

}  // namespace

std::vector<Straggler> find_stragglers(const Trace& trace, double now_ns, double window_ns, double share) {
  std::vector<Straggler> out;
  for (const auto& [group, collectives] : arrivals_of(trace)) {
    const int size = trace.groups[group].size;
    if (size < 2) continue;
    std::vector<const Arrivals*> whole;
    std::map<int, double> ranks;  // when each was last for the last time
    for (const auto& [sequence, at] : collectives) {
      if (at.ranks < size) continue;
      whole.push_back(&at);
      ranks[at.last_rank] = at.last;
    }
    for (const auto& [rank, at] : ranks) {
      if (at < now_ns - window_ns) continue;
      if (auto found = straggler(whole, rank, size, now_ns, share, trace.clock_error)) {
        found->group = group;
        out.push_back(*found);
      }
    }
  }
  return out;
}

}  // namespace medley::trace
