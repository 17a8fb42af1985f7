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
#include "tune/tuned_step_of.hpp"

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
    names_ = libraries();
    const bool only_pairs =
        std::all_of(names_.begin(), names_.end(), [](const std::string& one) { return route::is_made_of_two(one); });
    // Libraries first: on comms within a host a pair's routes are those of its first half, and added only once.
    std::vector<std::string> libraries_first = names_;
    std::stable_partition(libraries_first.begin(), libraries_first.end(),
                          [](const std::string& one) { return !route::is_made_of_two(one); });
    for (const std::string& library : libraries_first)
      search_.add(over_one(library), only_pairs || !route::is_made_of_two(library));
    if (search_.candidates().empty()) {
      throw Error(ErrorKind::unavailable, fmt::format("none of the backends {} moves {} memory between these ranks",
                                                      fmt::join(options_.backends, ", "), name(options_.memory)));
    }
    const std::optional<Assignment> before = earlier_choice();
    refuse_to_replace();
    const bool settled = before && table_.step->settled && knows_all_candidates(*table_.step);
    if (before) {
      earlier_ = table_.step;
      search_.add(*before, false);
    }
    search_.measure_at_first();
    if (settled && still_holds(*before)) return;
    keep();
    search_.worth_improving() ? improve() : search_.lead_with_fastest();
    search_.compare_with_libraries();
    keep();
  }

 private:
  void improve() {
    if (!over(StepSearch::share_of_cells)) measure_cells();
    search_.add(by_table(), false);
    std::vector<std::vector<Choice>> alternatives;
    for (const StepSlot& slot : slots_) alternatives.push_back(alternatives_for(slot));
    search_.improve(slots_, alternatives);
    keep();
  }
  /// A settled table may have cost minutes, and it has one step.
  void refuse_to_replace() const {
    if (!table_.step || !table_.step->settled || has_this_step() || options_.replace) return;
    throw Error(ErrorKind::invalid,
                fmt::format("the table is tuned for another step ({} on {}, {} memory); name another file with -o, or "
                            "give that step up with --replace",
                            table_.step->name, route::text(table_.step->shape), name(table_.step->memory)));
  }
  /// Whether a settled choice is still as fast as every library.
  bool still_holds(const Assignment& choice) const {
    double chosen_us = 0, library_us = INFINITY;
    for (const StepCandidate& one : search_.candidates()) {
      if (one.us.empty()) continue;
      if (text_of(one.assignment.routes) == text_of(choice.routes)) chosen_us = median_interval(one.us).low;
      if (one.library) library_us = std::min(library_us, median(one.us));
    }
    return chosen_us <= route::near_ratio * library_us;
  }
  /// Whether all libraries that take part now took part in that tuning.
  bool knows_all_candidates(const route::TunedStep& step) const {
    return std::all_of(search_.candidates().begin(), search_.candidates().end(), [&](const StepCandidate& one) {
      return std::any_of(step.libraries.begin(), step.libraries.end(),
                         [&](const route::StepTiming& timing) { return timing.name == one.assignment.name; });
    });
  }

  // What the search asks of the job. A sample's end is the same on all ranks, so the time used is too; only a stop
  // needs rank 0's word.
  double time_us(const Assignment& one) {
    const std::vector<Choice> routes = as_called(one.routes);
    const StepRoutes look_up(slots_, routes);
    now_ = one.name;
    const auto [known, unknown] = last_us_.try_emplace(text_of(one.routes), 0);
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
  Assignment over_one(const std::string& library) const {
    Assignment one{library, {}};
    for (const StepSlot& slot : slots_) one.routes.push_back(own_route(library, slot));
    return one;
  }

  bool has_this_step() const {
    const auto& step = table_.step;
    return step && step->operations == operations_ && step->memory == options_.memory &&
           step->hosts() == clock_.hosts();
  }
  /// What an earlier run chose for this step, if these ranks can take it.
  std::optional<Assignment> earlier_choice() const {
    if (!has_this_step()) return {};
    const auto& step = table_.step;
    Assignment one{"the earlier choice", {}};
    for (const StepSlot& slot : slots_) {
      const auto found = std::find_if(step->routes.begin(), step->routes.end(), [&](const route::StepRoute& route) {
        return slot.holds(route.op, route.dtype, route.shape, std::max(slot.from, route.from)) &&
               route.to >= slot.bytes;
      });
      if (found == step->routes.end() || !usable(slot, found->route)) return {};
      one.routes.push_back(found->route);
    }
    return one;
  }
  /// Whether it is listed, by itself or as a half of one made of two.
  bool is_open(const std::string& backend) const {
    return std::any_of(options_.backends.begin(), options_.backends.end(), [&](const std::string& listed) {
      const auto halves = route::halves_of(listed);
      return listed == backend || halves[0] == backend || halves[1] == backend;
    });
  }
  /// A row of another shape may name a pair that this slot's comms do not take.
  bool usable(const StepSlot& slot, const Choice& choice) const {
    return is_open(choice.backend) && takes(slot.shape, slot.in_blocks, choice.backend);
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
    std::optional<BoundToCore> bound;  // where the step is not
    if (options_.memory == Memory::host) bound.emplace(context_);
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
                         [&](const Choice& choice) { return usable(slot, choice); });
  }
  Assignment by_table() {
    Assignment one{"table", {}};
    const std::string& otherwise = search_.verdict().chosen->assignment.name;  // a library, so far
    for (const StepSlot& slot : slots_) {
      const route::Chosen chosen = chosen_alone(slot);
      const route::SizeRange* const range = chosen.at(slot.bytes);
      one.routes.push_back(range ? range->route : own_route(otherwise, slot));
    }
    return one;
  }
  /// The fastest routes of the slot's operation alone, the best of each backend first, and every library's own.
  std::vector<Choice> alternatives_for(const StepSlot& slot) {
    std::vector<Choice> best_of_each, others;
    const route::Chosen chosen = chosen_alone(slot);
    if (const route::Cell* cell = route::nearest_size(chosen.cells, slot.bytes)) {
      for (const route::Timing& timing : cell->routes) {
        if (!usable(slot, timing.route) || timing.median_us > worth_trying * cell->routes.front().median_us) continue;
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
    const bool used_up = used_ >= StepSearch::share_of_improving * options_.seconds;
    return 10 * std::ceil(std::max(search_.needed_seconds(), used_up ? 1.5 * options_.seconds : 0) / 10);
  }
  /// Whether an earlier run chose on more evidence than this one has so far.
  bool keeps_earlier(const StepVerdict& verdict) const {
    if (!earlier_) return false;
    const bool fewer = static_cast<std::int64_t>(verdict.chosen_us.size()) < earlier_->chosen.samples;
    return !verdict.compared || (!verdict.clear && fewer);
  }
  /// Puts the choice so far into the table.
  void keep() {
    const StepVerdict verdict = search_.verdict();
    table_.step = keeps_earlier(verdict) ? *earlier_ : tuned_step(verdict);
    table_.step->settled = !keeps_earlier(verdict) && verdict.settled;
    table_.step->needed_s = table_.step->settled ? 0 : needed_seconds();
    if (world_.rank() == 0) hooks_.changed(table_);
  }
  route::TunedStep tuned_step(const StepVerdict& verdict) const {
    route::TunedStep out = tuned_step_of(search_, verdict, slots_, names_);
    out.name = options_.name;
    out.operations = operations_;
    out.shape = route::shape_of(clock_.hosts());
    if (clock_.hosts() != route::hosts_in_blocks(out.shape)) out.placement = clock_.hosts();
    out.memory = options_.memory;
    return out;
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
  std::vector<std::string> names_;           // libraries and pairs
  std::optional<route::TunedStep> earlier_;  // what the table had for this step, if these ranks can take it
  route::Table cells_;                       // the single operations alone
  std::map<std::string, double>
      last_us_;      // by text_of(routes), of those whose results were checked; equal on all ranks
  double used_ = 0;  // seconds, at the end of the last sample
  std::size_t samples_ = 0;
  std::string now_;
};

}  // namespace

void tune_step(Context& context, Step& step, const StepTuneOptions& options, route::Table& table,
               const TuneHooks& hooks) {
  StepTuner(context, step, options, table, hooks).run();
}

}  // namespace medley::tune
