#include "reconcile/time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "reconcile/time_cells.hpp"

namespace medley::reconcile {
namespace {

// Longer traces are sampled: every n-th step of each rank.
constexpr std::size_t most_events = std::size_t{1} << 20;
constexpr std::size_t most_behind = 64;  ///< operations of a group that can be in progress before one of them

struct TimedOperation {
  trace::Event event;
  std::uint32_t kind = 0;
  std::uint64_t message = 0;
  std::int64_t planned = -1;  ///< position in the plan; -1: none that is certain
};

class TimeComparison {
 public:
  TimeComparison(const trace::Trace& trace, const Expectation& expectation, const Selection& selection, Fields ignored,
                 TimeModel model)
      : trace_(trace),
        expectation_(expectation),
        selection_(selection),
        ignored_(ignored),
        model_(std::move(model)),
        meetings_(trace) {}

  TimeReport run() {
    for (const trace::RankTrace& rank : trace_.ranks)  // first, so that groups get the plan's names
      if (!plans_.contains(rank.rank)) plans_[rank.rank] = expectation_.step_of(rank.rank, catalog_, ignored_);
    kinds_.emplace(trace_, ignored_, catalog_);
    choose_steps();
    for (std::size_t i = 0; i < trace_.ranks.size(); ++i) read_meetings(trace_.ranks[i], chosen_[i]);
    for (std::size_t i = 0; i < trace_.ranks.size(); ++i) {
      const trace::RankTrace& rank = trace_.ranks[i];
      if (selection_.rank < 0 || rank.rank == selection_.rank) read_rank(rank, chosen_[i]);
    }
    return finish();
  }

 private:
  void choose_steps() {
    std::size_t longest = 0;
    for (const trace::RankTrace& rank : trace_.ranks) longest = std::max(longest, rank.events->size());
    const std::size_t stride = longest / most_events + 1;
    for (const trace::RankTrace& rank : trace_.ranks) {
      SelectedSteps steps = select_steps(trace_, rank, selection_);
      if (stride > 1 && steps.steps.size() > 1)
        std::erase_if(steps.steps, [&](const auto& step) { return step.first % stride != 0; });
      chosen_.push_back(std::move(steps));
    }
    if (stride > 1) report_.remarks.push_back(fmt::format("times are from every {}th step", stride));
  }

  /// Calls visit(step, event, message) for the operations of the chosen steps.
  template <typename Visit>
  void walk(const trace::RankTrace& rank, const SelectedSteps& steps, const Visit& visit) {
    MessageNumbers messages;
    const bool from_start = rank.issued <= static_cast<std::int64_t>(rank.events->size());
    std::size_t step = 0;
    trace::Event event;
    for (std::size_t i = 0; i < rank.events->size() && step < steps.steps.size(); ++i) {
      if (!rank.read(i, event)) continue;
      const std::uint64_t message = is_collective(event.op) || !from_start ? 0 : messages.next(event);
      while (step < steps.steps.size() && i >= steps.steps[step].second.end) ++step;
      if (step == steps.steps.size() || i < steps.steps[step].second.begin || !kinds_->counts(event)) continue;
      visit(step, event, message);
    }
  }

  void read_meetings(const trace::RankTrace& rank, const SelectedSteps& steps) {
    walk(rank, steps, [&](std::size_t, const trace::Event& event, std::uint64_t message) {
      meetings_.add(event, rank.rank, message);
    });
  }

  void read_rank(const trace::RankTrace& rank, const SelectedSteps& steps) {
    std::vector<TimedOperation> operations;
    std::size_t current = 0;
    waited_until_ = -1;
    fitting_.clear();
    const auto end_step = [&] {
      if (!operations.empty()) read_step(rank.rank, operations);
      operations.clear();
    };
    walk(rank, steps, [&](std::size_t step, const trace::Event& event, std::uint64_t message) {
      if (step != current) end_step();
      current = step;
      operations.push_back({event, kinds_->number_of(event), message});
    });
    end_step();
    const double count =
        steps.repeats > 1 ? static_cast<double>(steps.repeats) : static_cast<double>(steps.steps.size());
    rank_steps_ += count;
    ranks_.insert(rank.rank);
    report_.steps = std::max(report_.steps, static_cast<std::size_t>(count));
    for (const std::uint32_t group : groups_of_rank_) steps_of_group_[group] += count;
    groups_of_rank_.clear();
  }

  void read_step(int rank, std::vector<TimedOperation>& operations) {
    pair_with_plan(rank, operations);
    std::vector<std::size_t> by_wait;
    double first = -1, last = -1;
    for (std::size_t i = 0; i < operations.size(); ++i) {
      const trace::Event& event = operations[i].event;
      by_wait.push_back(i);
      if (event.issued >= 0 && (first < 0 || event.issued < first)) first = event.issued;
      last = std::max(last, event.completed);
    }
    if (trace_.timed && last > first) {
      step_us_ += (last - first) / 1e3;
      timed_steps_ += 1;
    }
    const auto wait_of = [&](std::size_t i) { return operations[i].event.completed - operations[i].event.exposed; };
    std::stable_sort(by_wait.begin(), by_wait.end(),
                     [&](std::size_t a, std::size_t b) { return wait_of(a) < wait_of(b); });
    for (const std::size_t i : by_wait) read_operation(rank, operations, i);
  }

  /// The n-th observed operation of a kind is the n-th planned one that it fits, if there are as many.
  void pair_with_plan(int rank, std::vector<TimedOperation>& operations) {
    const Expectation::Step& plan = plans_.at(rank);
    std::map<std::uint32_t, std::size_t> seen;
    for (const TimedOperation& operation : operations)
      seen[operation.kind] += static_cast<std::size_t>(operation.event.count);
    std::map<std::uint32_t, std::size_t> next;
    for (TimedOperation& operation : operations) {
      const std::vector<std::size_t>& places = fitting(plan, operation.kind);
      if (operation.event.count == 1 && places.size() == seen[operation.kind])
        operation.planned = static_cast<std::int64_t>(places[next[operation.kind]++]);
    }
  }

  /// Positions in the plan that operations of this kind fit.
  const std::vector<std::size_t>& fitting(const Expectation::Step& plan, std::uint32_t kind) {
    const auto [at, fresh] = fitting_.try_emplace(kind);
    if (fresh) {
      for (std::size_t i = 0; i < plan.sequence.size(); ++i)
        if (catalog_.fits(plan.sequence[i].kind, kind)) at->second.push_back(i);
    }
    return at->second;
  }

  /// The group in the catalog: the trace's, or, where that lacks its ranks, the only one of the plan that fits.
  std::uint32_t group_of(int rank, const TimedOperation& operation) {
    const trace::Group& group = trace_.groups[operation.event.group];
    const std::uint32_t own = catalog_.group(group.ranks, group.name);
    if (!group.ranks.empty()) return own;
    const Expectation::Step& plan = plans_.at(rank);
    if (operation.planned >= 0) return catalog_[plan.sequence[static_cast<std::size_t>(operation.planned)].kind].group;
    std::set<std::uint32_t> groups;
    for (const std::size_t at : fitting(plan, operation.kind)) groups.insert(catalog_[plan.sequence[at].kind].group);
    return groups.size() == 1 ? *groups.begin() : own;
  }

  struct Predicted {
    std::optional<double> expected_us, bandwidth_us;
  };
  const Predicted& predicted(int rank, const TimedOperation& operation, std::uint32_t group) {
    const trace::Event& event = operation.event;
    const bool message = !is_collective(event.op);
    const auto [at, fresh] = predictions_.try_emplace(
        std::tuple(operation.kind, group, event.backend, event.algorithm, event.on_device, message ? rank : -1));
    if (fresh) {
      std::vector<int> who = catalog_.group_of_number(group).ranks;
      if (message) who = event.peer < 0 ? std::vector<int>{} : std::vector<int>{rank, static_cast<int>(event.peer)};
      at->second = {model_.expected_us(event, who), model_.at_full_bandwidth_us(event, who)};
    }
    return at->second;
  }

  /// Of the time from `begin` to the operation's start: in which another one of its group was in progress.
  double queued(const std::vector<TimedOperation>& operations, std::size_t i, double begin, TimeCell& cell) const {
    const trace::Event& event = operations[i].event;
    std::vector<std::tuple<double, double, std::uint32_t>> busy;
    for (std::size_t j = i, tried = 0; j-- > 0 && tried < most_behind && event.started > begin;) {
      const trace::Event& other = operations[j].event;
      if (other.group != event.group || other.started < 0) continue;
      ++tried;
      const double from = std::max(begin, other.started), to = std::min(other.completed, event.started);
      if (to > from) busy.emplace_back(from, to, operations[j].kind);
    }
    std::sort(busy.begin(), busy.end());
    double sum = 0, until = begin;
    for (const auto& [from, to, kind] : busy) {
      const double more = std::max(0.0, to - std::max(from, until));
      sum += more;
      if (more > 0) cell.behind[kind] += more / 1e3;
      until = std::max(until, to);
    }
    return sum;
  }

  void read_operation(int rank, const std::vector<TimedOperation>& operations, std::size_t i) {
    const TimedOperation& operation = operations[i];
    const trace::Event& event = operation.event;
    const std::uint32_t group = group_of(rank, operation);
    groups_of_rank_.insert(group);
    const Kind& kind = catalog_[operation.kind];
    const Expectation::Step& plan = plans_.at(rank);
    const auto place = static_cast<std::size_t>(std::max<std::int64_t>(0, operation.planned));
    const Kind& named = operation.planned >= 0 ? catalog_[plan.sequence[place].kind] : kind;
    const Catalog::Group& members = catalog_.group_of_number(group);
    TimeCell& cell =
        cells_.at({kind.op, members.name,
                   members.ranks.empty() ? trace_.groups[event.group].size : static_cast<int>(members.ranks.size()),
                   event.unknown.has(Field::bytes) ? -1 : event.bytes, named.phase},
                  group, operation.planned >= 0 ? plan.layers[place] : -1);
    cell.count += event.count;
    const auto times = static_cast<double>(event.count);
    const Predicted& predict = predicted(rank, operation, group);
    if (predict.expected_us) {
      cell.expected_us += *predict.expected_us * times;
      cell.predicted += event.count;
    } else {
      ++unpredicted_;
    }
    if (predict.bandwidth_us) {
      cell.bandwidth_us += *predict.bandwidth_us * times;
      cell.linked += event.count;
    }
    if (!trace_.timed || event.state != trace::State::complete) return;
    const std::optional<Ready> last = meetings_.last_ready(event, rank, operation.message);
    const std::optional<double> observed = transfer_us(event, last);
    if (!observed) return void(++untimed_);
    cell.observed_us.push_back(static_cast<float>(*observed));
    cell.with_waiting += !last;
    if (!trace_.waits_known || !event.exposed_known) {
      cell.waits_known = false;
      ++unknown_waits_;
      return;
    }
    Wait wait{std::max(event.completed - event.exposed, waited_until_), 0, last, predict.expected_us};
    waited_until_ = std::max(waited_until_, event.completed);  // the program may wait for several at once
    wait.queued = queued(operations, i, wait.begin, cell);
    const Waits waits = divide(event, rank, wait);
    cell.waits.add(waits, times);
    if (waits[WaitCause::late_rank] > 0) cell.late[last->rank] += waits[WaitCause::late_rank] * times;
  }

  TimeReport finish() {
    report_.source = model_.source();
    report_.ranks = ranks_.size();
    // A mean, as the exposed times beside it.
    if (timed_steps_ > 0) report_.step_us = step_us_ / timed_steps_;
    report_.rows = cells_.rows(catalog_, std::max(1.0, rank_steps_), steps_of_group_);
    report_.findings = time_findings(report_.rows);
    for (const std::string& remark : model_.remarks()) report_.remarks.push_back(remark);
    const auto remark = [&](bool holds, std::string sentence) {
      if (holds) report_.remarks.push_back(std::move(sentence));
    };
    remark(!trace_.timed, "observed times are unknown: the source has none");
    remark(trace_.timed && !trace_.waits_known,
           "exposed times are unknown: the source does not record when the program waited");
    remark(
        trace_.waits_known && unknown_waits_ > 0,
        fmt::format("the exposed times of {} operations are unknown: the program waited for their futures, if at all",
                    unknown_waits_));
    remark(trace_.timed &&
               std::any_of(report_.rows.begin(), report_.rows.end(), [](const TimeRow& r) { return r.with_waiting; }),
           "some observed times include waiting for other ranks: when all ranks of an operation were ready is unknown");
    remark(
        untimed_ > 0,
        fmt::format("the times of {} operations are unknown: the source has only those of the host's call", untimed_));
    remark(unpredicted_ > 0, fmt::format("{} operations have no expected time: {}", unpredicted_,
                                         "their size or group is unknown, or the table has no row for them"));
    return std::move(report_);
  }

  const trace::Trace& trace_;
  const Expectation& expectation_;
  const Selection& selection_;
  Fields ignored_;
  TimeModel model_;
  Catalog catalog_;
  std::optional<ObservedKinds> kinds_;
  Meetings meetings_;
  std::map<int, Expectation::Step> plans_;
  std::vector<SelectedSteps> chosen_;                          ///< by index of the trace's ranks
  std::map<std::uint32_t, std::vector<std::size_t>> fitting_;  ///< by kind, for the rank being read
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, bool, int>, Predicted> predictions_;
  TimeCells cells_;
  double waited_until_ = -1;
  std::set<int> ranks_;
  std::set<std::uint32_t> groups_of_rank_;
  std::map<std::uint32_t, double> steps_of_group_;
  double rank_steps_ = 0;
  std::int64_t untimed_ = 0, unpredicted_ = 0, unknown_waits_ = 0;
  double step_us_ = 0, timed_steps_ = 0;  ///< sum over ranks and steps
  TimeReport report_;
};

}  // namespace

std::optional<double> TimeReport::exposed_us() const {
  std::optional<double> out;
  for (const TimeRow& row : rows)
    if (row.exposed_us) out = out.value_or(0) + *row.exposed_us;
  return out;
}

Waits TimeReport::waits() const {
  Waits out;
  for (const TimeRow& row : rows) out.add(row.waits);
  return out;
}

TimeReport compare_times(const trace::Trace& trace, const Expectation& expectation, const Selection& selection,
                         Fields ignored, TimeModel model) {
  return TimeComparison(trace, expectation, selection, ignored, std::move(model)).run();
}

}  // namespace medley::reconcile
