#include "reconcile/explain.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <medley/error.hpp>

#include "reconcile/hypotheses.hpp"

namespace medley::reconcile {
namespace {

// Pairs of hypotheses are tried only for the best singles: with all of them a search over hundreds of plans would take
// minutes.
constexpr std::size_t nearest_singles = 12;
constexpr std::size_t of_one_setting = 2;
constexpr std::size_t most_operations = std::size_t{1} << 26;  // planned while searching for pairs

/// What a set of hypotheses predicts for the cases.
struct Trial {
  std::vector<std::size_t> hypotheses;
  std::vector<Sequence> predicted;                  ///< by case
  std::vector<std::vector<std::uint32_t>> touched;  ///< by case: kinds whose count it changes
  std::int64_t rows = 0;                            ///< changed; see attempt()
  std::size_t left = 0;                             ///< differences that remain
};

bool touches(const Trial& trial, std::size_t at, std::uint32_t kind) {
  return std::binary_search(trial.touched[at].begin(), trial.touched[at].end(), kind);
}

class Search {
 public:
  Search(const Plan& plan, const Options& options, std::vector<Case>& cases, Report& report)
      : plan_(plan), options_(options), cases_(cases), catalog_(report.catalog) {
    std::set<std::int64_t> sizes;
    for (const Case& c : cases) {
      for (const Line& line : c.result->lines) {
        const Kind& kind = catalog_[line.observed];
        if (line.differs() && line.observed_count > 0 && reduces(kind.op)) sizes.insert(kind.bytes);
        base_ += line.differs();
      }
    }
    while (sizes.size() > 24) sizes.erase(std::prev(sizes.end()));
    hypotheses_ = hypotheses(plan, sizes);
    // The case with the most differences comes first: it refutes soonest.
    for (std::size_t i = 0; i < cases.size(); ++i) order_.push_back(i);
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      return differences(*cases_[a].result) > differences(*cases_[b].result);
    });
  }

  /// The accepted trials with the fewest differences left; several when they predict the same.
  std::vector<Trial> best() {
    std::vector<Trial> accepted;
    std::vector<std::pair<double, std::size_t>> near;
    for (std::size_t i = 0; i < hypotheses_.size(); ++i) {
      double distance = 0;
      if (auto trial = attempt({i}, distance)) take(std::move(*trial), accepted);
      if (distance >= 0) near.emplace_back(distance, i);
    }
    if (least(accepted) > 0) {
      std::stable_sort(near.begin(), near.end());
      std::map<std::string, std::size_t> of_setting;
      std::size_t taken = 0;
      for (const auto& [distance, first] : near) {
        if (of_setting[hypotheses_[first].setting]++ >= of_one_setting) continue;
        if (++taken > nearest_singles) break;
        try_pairs(first, accepted);
      }
    }
    const std::size_t fewest = least(accepted);
    if (fewest >= base_) return {};
    std::erase_if(accepted, [&](const Trial& t) { return t.left > fewest; });
    // Among equal ones, the simpler.
    std::size_t parameters = accepted.front().hypotheses.size();
    for (const Trial& t : accepted) parameters = std::min(parameters, t.hypotheses.size());
    std::erase_if(accepted, [&](const Trial& t) { return t.hypotheses.size() > parameters; });
    return accepted;
  }

  const Hypothesis& hypothesis(std::size_t number) const { return hypotheses_[number]; }
  /// Hypotheses that predict everything, but no more rows than they have free parameters.
  const std::vector<Trial>& too_weak() const { return too_weak_; }

 private:
  static std::size_t differences(const StepsResult& result) {
    return static_cast<std::size_t>(
        std::count_if(result.lines.begin(), result.lines.end(), [](const Line& l) { return l.differs(); }));
  }
  std::size_t least(const std::vector<Trial>& trials) const {
    std::size_t out = base_;
    for (const Trial& t : trials) out = std::min(out, t.left);
    return out;
  }

  void take(Trial trial, std::vector<Trial>& accepted) {
    if (trial.rows > static_cast<std::int64_t>(trial.hypotheses.size())) accepted.push_back(std::move(trial));
    else if (trial.left == 0 && trial.hypotheses.size() == 1) too_weak_.push_back(std::move(trial));
  }

  void try_pairs(std::size_t first, std::vector<Trial>& accepted) {
    for (std::size_t second = 0; second < hypotheses_.size(); ++second) {
      if (hypotheses_[first].setting == hypotheses_[second].setting) continue;
      if (planned_ > most_operations) return;
      double distance = 0;
      auto trial = attempt({std::min(first, second), std::max(first, second)}, distance);
      const bool known = trial && std::any_of(accepted.begin(), accepted.end(),
                                              [&](const Trial& t) { return t.hypotheses == trial->hypotheses; });
      if (trial && !known) take(std::move(*trial), accepted);
    }
  }

  /// The plan with the hypotheses applied, or nothing where they change nothing or are impossible.
  std::optional<Plan> plan_with(const std::vector<std::size_t>& numbers) const {
    Plan plan = plan_;
    try {
      for (const std::size_t number : numbers) {
        if (!hypotheses_[number].apply(plan)) return std::nullopt;
      }
      plan::check(plan.layout, plan.model);
    } catch (const Error&) {
      return std::nullopt;
    }
    if (plan.layout.world() != plan_.layout.world()) return std::nullopt;
    return plan;
  }

  /// Accepts the hypotheses if every row that they change matches. `distance` becomes the distance of the first case
  /// from their prediction, or -1 where they predict nothing new.
  std::optional<Trial> attempt(const std::vector<std::size_t>& numbers, double& distance) {
    distance = -1;
    const std::optional<Plan> plan = plan_with(numbers);
    if (!plan) return std::nullopt;
    Trial trial{numbers, std::vector<Sequence>(cases_.size()), std::vector<std::vector<std::uint32_t>>(cases_.size()),
                0, 0};
    std::map<int, Sequence> by_rank;
    std::set<std::uint32_t> more, fewer;  // rows that it adds and rows that it removes
    bool first = true;
    for (const std::size_t at : order_) {
      const Case& c = cases_[at];
      auto planned = by_rank.find(c.rank);
      if (planned == by_rank.end()) {
        try {
          planned = by_rank.emplace(c.rank, expected_step(*plan, c.rank, catalog_, options_.ignored)).first;
        } catch (const Error&) {
          return std::nullopt;  // the framework cannot run it
        }
        planned_ += planned->second.size();
        for (Run& run : planned->second) run.count *= c.observed->repeats;
      }
      const Comparison now = compare(catalog_, planned->second, c.variant->sequence, c.ordered);
      trial.predicted[at] = planned->second;
      trial.touched[at] = touched(c.expected, planned->second);
      const Tally before(c.expected), after(planned->second);
      for (const std::uint32_t kind : trial.touched[at])
        (after.of(kind) > before.of(kind) ? more : fewer).insert(bare(kind));
      if (first) {
        if (trial.touched[at].empty() && planned->second == c.expected) return std::nullopt;
        distance = bytes_apart(now);
        first = false;
      }
      if (!holds(trial, at, now)) return std::nullopt;
      trial.left += now.differences();
    }
    // A row that turns into another counts once.
    trial.rows = static_cast<std::int64_t>(std::max(more.size(), fewer.size()));
    return trial;
  }

  /// The row as evidence: the same row on another group, rank or pass is no new evidence, since the ranks of a job
  /// behave alike and the backward pass repeats the forward pass.
  std::uint32_t bare(std::uint32_t number) {
    Kind kind = catalog_[number];
    kind.group = 0;
    kind.root = -1;
    kind.phase = 0;
    kind.async = false;
    return catalog_.kind(kind);
  }

  static std::vector<std::uint32_t> touched(const Sequence& before, const Sequence& after) {
    const Tally a(before), b(after);
    std::vector<std::uint32_t> out;
    for (const std::uint32_t kind : a.kinds)
      if (a.of(kind) != b.of(kind)) out.push_back(kind);
    for (const std::uint32_t kind : b.kinds)
      if (a.of(kind) == 0) out.push_back(kind);
    std::sort(out.begin(), out.end());
    return out;
  }

  /// Every operation of a touched kind has a match, on both sides.
  bool holds(const Trial& trial, std::size_t at, const Comparison& now) const {
    for (const std::uint32_t kind : now.left_expected.kinds)
      if (now.left_expected.of(kind) > 0 && touches(trial, at, kind)) return false;
    for (const std::uint32_t seen : now.left_observed.kinds) {
      if (now.left_observed.of(seen) <= 0) continue;
      for (const std::uint32_t kind : trial.touched[at])
        if (catalog_.fits(kind, seen)) return false;
    }
    return true;
  }

  double bytes_apart(const Comparison& comparison) const {
    double sum = 0;
    for (const Tally* side : {&comparison.left_expected, &comparison.left_observed}) {
      for (const std::uint32_t kind : side->kinds)
        sum += static_cast<double>(side->of(kind)) * static_cast<double>(catalog_[kind].bytes + 1);
    }
    return sum;
  }

  const Plan& plan_;
  const Options& options_;
  std::vector<Case>& cases_;
  Catalog& catalog_;
  std::vector<Hypothesis> hypotheses_;
  std::vector<Trial> too_weak_;
  std::vector<std::size_t> order_;
  std::size_t base_ = 0, planned_ = 0;
};

/// The sentence of a trial; for trials with equal predictions, all of them.
std::string sentence_of(const std::vector<Trial>& trials, const Search& search) {
  std::vector<std::string> alternatives;
  for (const Trial& trial : trials) {
    std::vector<std::string> parts;
    for (const std::size_t number : trial.hypotheses) parts.push_back(search.hypothesis(number).sentence);
    alternatives.push_back(fmt::format("{}", fmt::join(parts, ", and ")));
  }
  return fmt::format("{}", fmt::join(alternatives, "; or: "));
}

}  // namespace

void judge_order(const Comparison& now, const std::string& cause, StepsResult& result) {
  const auto is_order = [](const Line& line) { return line.verdict == Verdict::order; };
  const auto wrong = std::find_if(now.lines.begin(), now.lines.end(), is_order);
  const auto before = std::find_if(result.lines.begin(), result.lines.end(), is_order);
  if (before != result.lines.end() && wrong == now.lines.end()) before->cause = cause;
  if (before == result.lines.end() && wrong != now.lines.end()) result.lines.insert(result.lines.begin(), *wrong);
}

void explain_by_settings(const Plan& plan, const Options& options, std::vector<Case>& cases, Report& report) {
  if (cases.empty()) return;
  Search search(plan, options, cases, report);
  std::vector<Trial> trials = search.best();
  if (!search.too_weak().empty() && (trials.empty() || trials.front().left > 0)) {
    const Trial& weak = search.too_weak().front();
    report.suggestions.push_back({sentence_of(search.too_weak(), search), 1, weak.rows});
  }
  if (trials.empty()) return;
  // Trials with different predictions cannot all be true: names the first, with its equals.
  const Trial chosen = trials.front();
  std::erase_if(trials, [&](const Trial& t) { return t.predicted != chosen.predicted; });
  const std::string sentence = sentence_of(trials, search);
  for (std::size_t at = 0; at < cases.size(); ++at) {
    Case& c = cases[at];
    const Comparison now = compare(report.catalog, chosen.predicted[at], c.variant->sequence, c.ordered);
    for (Line& line : c.result->lines) {
      const bool expected = line.expected_count == 0 || touches(chosen, at, line.expected);
      const bool observed = line.observed_count == 0 ||
                            std::any_of(chosen.touched[at].begin(), chosen.touched[at].end(),
                                        [&](std::uint32_t k) { return report.catalog.fits(k, line.observed); });
      if (line.differs() && line.verdict != Verdict::order && expected && observed) line.cause = sentence;
    }
    judge_order(now, sentence, *c.result);
    c.expected = chosen.predicted[at];
  }
  report.explanations.push_back({sentence, static_cast<int>(chosen.hypotheses.size()), chosen.rows});
}

}  // namespace medley::reconcile
