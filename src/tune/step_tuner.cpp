#include "tune/step_tuner.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <medley/error.hpp>

#include "route/choose.hpp"
#include "route/pair_name.hpp"
#include "tune/candidates.hpp"
#include "tune/cell_statistics.hpp"
#include "tune/job_clock.hpp"
#include "tune/rank_setup.hpp"
#include "tune/step_search.hpp"
#include "tune/tune_job.hpp"

namespace medley::tune {
namespace {

constexpr double worth_trying = 3;  // a route this much slower alone is not tried in the step
constexpr std::size_t most_alternatives = 6;

/// As a call passes it: the library's own algorithm has no name.
std::vector<Choice> as_called(std::vector<Choice> routes) {
  for (Choice& route : routes) {
    if (route.algorithm == "native") route.algorithm.clear();
  }
  return routes;
}

class StepTuner {
 public:
  StepTuner(Context& context, Step& step, const StepTuneOptions& options, route::Table& table, const TuneHooks& hooks)
      : context_(context),
        step_(step),
        options_(options),
        table_(table),
        hooks_(hooks),
        world_(context.world()),
        clock_(context),
        slots_(slots_of(step.operations())),
        operations_(fingerprint(step.operations(), step.computing_us())),
        search_({.time_us = [this](const Assignment& one) { return time_us(one); },
                 .over = [this](double share) { return over(share); },
                 .left_us = [this](double share) { return std::max(0.0, 1e6 * (share * options_.seconds - used_)); },
                 .agree = [this](std::vector<std::uint8_t>& decision) { agree(decision); }}) {}

  void run() {
    name_machine(context_, table_);
    share_table(world_, table_);
    if (is_settled()) return;
    names_ = libraries();
    const bool only_pairs =
        std::all_of(names_.begin(), names_.end(), [](const std::string& one) { return route::is_made_of_two(one); });
    for (const std::string& library : names_)
      search_.add(over_one(library), only_pairs || !route::is_made_of_two(library));
    if (search_.candidates().empty()) {
      throw Error(ErrorKind::unavailable, fmt::format("none of the backends {} moves {} memory between these ranks",
                                                      fmt::join(options_.backends, ", "), name(options_.memory)));
    }
    const std::optional<Assignment> before = earlier_choice();
    search_.measure_at_first();
    keep();
    if (!over(StepSearch::share_of_cells)) measure_cells();
    if (before) search_.add(*before, false);
    search_.add(by_table(), false);
    std::vector<std::vector<Choice>> alternatives;
    for (const StepSlot& slot : slots_) alternatives.push_back(alternatives_for(slot));
    search_.improve(slots_, alternatives);
    keep();
    search_.compare_with_libraries();
    keep();
  }

 private:
  bool is_settled() const {
    return table_.step && table_.step->settled && table_.step->operations == operations_ &&
           table_.step->memory == options_.memory && table_.step->shape == route::shape_of(clock_.hosts());
  }

  // What the search asks of the job. A sample's end is the same on all ranks, so the time used is too; only a stop
  // needs rank 0's word.
  double time_us(const Assignment& one) {
    const std::vector<Choice> routes = as_called(one.routes);
    const StepRoutes look_up(slots_, routes);
    now_ = one.name;
    const auto [known, unknown] = last_us_.try_emplace(one.name, 0);
    if (unknown) {
      step_.check(look_up, one.name);
    } else if (known->second < StepSearch::long_step_us) {
      step_.run(look_up);  // untimed: absorbs what the assignment before left in caches and threads
    }
    const Sample sample = clock_.time([&] { step_.run(look_up); });
    used_ = clock_.seconds_at(sample);
    ++samples_;
    known->second = std::max(sample.us, 0.001);
    return known->second;
  }
  bool over(double share) {
    std::vector<std::uint8_t> stop{0};
    if (world_.rank() == 0) {
      stop[0] = hooks_.stop() || used_ >= share * options_.seconds ? 1 : 0;
      hooks_.progress({used_, samples_, samples_, fmt::format("the step over {}", now_)});
    }
    agree(stop);
    return stop[0] != 0;
  }
  void agree(std::vector<std::uint8_t>& decision) {
    if (!decision.empty()) world_.broadcast(decision, 0);
  }

  /// Those that serve the whole world.
  std::vector<std::string> libraries() {
    std::vector<std::string> names;
    for (const Candidate& usable : candidates(world_, Op::all_reduce, DType::f32, options_.memory, {options_.backends}))
      names.push_back(usable.backend);
    return names;
  }
  Choice own_of(const std::string& library, const StepSlot& slot) const {
    return {std::string(route::backend_on(slot.shape, library)), "native"};
  }
  Assignment over_one(const std::string& library) const {
    Assignment one{library, {}};
    for (const StepSlot& slot : slots_) one.routes.push_back(own_of(library, slot));
    return one;
  }

  /// What an earlier run on this step chose, if it was a mix.
  std::optional<Assignment> earlier_choice() const {
    if (!table_.step || table_.step->operations != operations_ || !table_.step->library.empty()) return {};
    Assignment one{"the earlier choice", {}};
    for (const StepSlot& slot : slots_) {
      const auto found =
          std::find_if(table_.step->routes.begin(), table_.step->routes.end(), [&](const route::StepRoute& route) {
            return slot.holds(route.op, route.dtype, route.shape, std::max(slot.from, route.from)) &&
                   route.to >= slot.bytes;
          });
      if (found == table_.step->routes.end() || !usable(found->route)) return {};
      one.routes.push_back(found->route);
    }
    return one;
  }
  bool usable(const Choice& choice) const {
    return std::find(options_.backends.begin(), options_.backends.end(), choice.backend) != options_.backends.end();
  }

  /// The operations of the step one at a time, on the shapes of its comms.
  void measure_cells() {
    TuneOptions cells{.ops = {}, .sizes = {}, .backends = options_.backends, .memory = options_.memory};
    std::vector<NeededOperation> needed;
    for (const StepOperation& operation : step_.operations()) {
      needed.push_back({route::routed_as(operation.op), operation.dtype, operation.bytes});
      if (std::find(cells.shapes.begin(), cells.shapes.end(), operation.shape) == cells.shapes.end())
        cells.shapes.push_back(operation.shape);
    }
    cells.seconds = std::max(0.0, StepSearch::share_of_cells * options_.seconds - used_);
    restrict_to(cells, std::move(needed));
    std::optional<BoundToCore> bound;
    if (options_.memory == Memory::host) bound.emplace(context_);  // as in bench
    tune(context_, cells, table_, hooks_);
    used_ = clock_.seconds();
  }

  /// The routes for single operations; the step's own are what is being searched.
  route::Chosen chosen_alone(const StepSlot& slot) {
    cells_.machine = table_.machine;
    if (cells_.cells().empty()) {
      for (const route::Cell& cell : table_.cells()) cells_.put(cell);
    }
    return route::choose(cells_, slot.op, options_.memory, slot.dtype, slot.shape,
                         [&](const Choice& choice) { return usable(choice); });
  }
  Assignment by_table() {
    Assignment one{"table", {}};
    const std::string& otherwise = search_.verdict().chosen->assignment.name;  // a library, so far
    for (const StepSlot& slot : slots_) {
      const route::Chosen chosen = chosen_alone(slot);
      const route::SizeRange* const range = chosen.at(slot.bytes);
      one.routes.push_back(range ? range->route : own_of(otherwise, slot));
    }
    return one;
  }
  /// The fastest routes of the slot's operation alone, the best of each backend first, and every library's own.
  std::vector<Choice> alternatives_for(const StepSlot& slot) {
    std::vector<Choice> best_of_each, others;
    const route::Chosen chosen = chosen_alone(slot);
    if (const route::Cell* cell = route::nearest_size(chosen.cells, slot.bytes)) {
      for (const route::Timing& timing : cell->routes) {
        if (!usable(timing.route) || timing.median_us > worth_trying * cell->routes.front().median_us) continue;
        const bool known = std::any_of(best_of_each.begin(), best_of_each.end(),
                                       [&](const Choice& c) { return c.backend == timing.route.backend; });
        (known ? others : best_of_each).push_back(timing.route);
      }
    } else {
      for (const StepCandidate& one : search_.candidates())
        best_of_each.push_back(one.assignment.routes[static_cast<std::size_t>(&slot - slots_.data())]);
    }
    best_of_each.insert(best_of_each.end(), others.begin(), others.end());
    if (best_of_each.size() > most_alternatives) best_of_each.resize(most_alternatives);
    return best_of_each;
  }

  /// Rounded up, for people. What was not enough this time is not enough.
  double needed_seconds() const {
    const bool used_up = used_ >= 0.9 * options_.seconds;
    return 10 * std::ceil(std::max(search_.needed_seconds(), used_up ? 1.5 * options_.seconds : 0) / 10);
  }
  static route::StepTiming timing_of(const std::string& name, const std::vector<double>& us) {
    const double middle = median(us);
    const Interval interval = median_interval(us);
    return {name, middle, std::min(interval.low, middle), std::max(interval.high, middle),
            static_cast<std::int64_t>(us.size())};
  }
  /// Puts the choice so far into the table.
  void keep() {
    const StepVerdict verdict = search_.verdict();
    route::TunedStep out;
    out.name = options_.name;
    out.operations = operations_;
    out.shape = route::shape_of(clock_.hosts());
    out.memory = options_.memory;
    out.chosen = timing_of("auto", verdict.chosen_us);
    if (verdict.chosen->library) out.library = verdict.chosen->assignment.name;
    out.gain = verdict.gain, out.gain_low = verdict.gain_low, out.gain_high = verdict.gain_high;
    out.confidence = verdict.confidence;
    out.settled = verdict.settled;
    if (!out.settled) out.needed_s = needed_seconds();
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const StepSlot& slot = slots_[i];
      const Choice& route = verdict.chosen->assignment.routes[i];
      route::StepRoute* last = out.routes.empty() ? nullptr : &out.routes.back();
      if (last && last->op == slot.op && last->dtype == slot.dtype && last->shape == slot.shape &&
          last->route == route) {
        last->to = slot.to;
      } else {
        out.routes.push_back({slot.op, slot.dtype, slot.shape, slot.from, slot.to, route});
      }
    }
    for (const StepCandidate& one : search_.candidates()) {
      if (one.us.empty() || std::find(names_.begin(), names_.end(), one.assignment.name) == names_.end()) continue;
      out.libraries.push_back(timing_of(one.assignment.name, &one == verdict.library ? verdict.library_us
                                                             : one.fresh_us.empty()  ? one.us
                                                                                     : one.fresh_us));
    }
    std::stable_sort(out.libraries.begin(), out.libraries.end(),
                     [](const auto& a, const auto& b) { return a.median_us < b.median_us; });
    table_.step = std::move(out);
    if (world_.rank() == 0) hooks_.changed(table_);
  }

  Context& context_;
  Step& step_;
  const StepTuneOptions& options_;
  route::Table& table_;
  const TuneHooks& hooks_;
  Comm world_;
  JobClock clock_;
  std::vector<StepSlot> slots_;
  std::string operations_;
  StepSearch search_;
  std::vector<std::string> names_;         // libraries and pairs
  route::Table cells_;                     // the single operations alone
  std::map<std::string, double> last_us_;  // of the assignments whose results were compared, equal on all ranks
  double used_ = 0;                        // seconds, at the end of the last sample
  std::size_t samples_ = 0;
  std::string now_;
};

}  // namespace

void tune_step(Context& context, Step& step, const StepTuneOptions& options, route::Table& table,
               const TuneHooks& hooks) {
  StepTuner(context, step, options, table, hooks).run();
}

}  // namespace medley::tune
