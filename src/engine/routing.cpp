#include "engine/routing.hpp"

#include <algorithm>
#include <cmath>

#include "algorithms/compressed.hpp"
#include "algorithms/registry.hpp"
#include "base/v_collectives.hpp"
#include "compress/codec.hpp"
#include "engine/comm_state.hpp"
#include "route/choose.hpp"

namespace medley::core {
namespace {

using Lanes = std::vector<std::unique_ptr<LaneState>>;

LaneState* lane_named(const Lanes& lanes, std::string_view name, Op op, Memory memory) {
  for (const auto& lane : lanes) {
    if (lane->name == name && lane->moves(op, memory)) return lane.get();
  }
  return nullptr;
}

/// Without rules and rows: the backend that declares itself the default for this memory; a pair, for what it does in
/// phases; or the first that handles the memory. Staging lanes come last in a comm, so CUDA memory is staged only where
/// no backend handles it natively.
LaneState* built_in_choice(const Lanes& lanes, Op op, Memory memory) {
  for (const auto& lane : lanes) {
    if ((memory == Memory::cuda ? lane->default_for_cuda : lane->default_for_host) && lane->moves(op, memory))
      return lane.get();
  }
  for (const auto& lane : lanes) {
    if (memory == Memory::host && lane->in_phases[static_cast<std::size_t>(op)] && lane->moves(op, memory))
      return lane.get();
  }
  for (const auto& lane : lanes) {
    if (lane->has(memory)) return lane.get();
  }
  for (const auto& lane : lanes) {
    if (lane->moves(op, memory)) return lane.get();
  }
  return nullptr;
}

/// The algorithm of a rule on a lane. Codecs apply to host and staged memory and to some collectives in streams, and to
/// messages only where a rule names messages.
std::string algorithm_of(const Rules::Rule& rule, const LaneState& lane, Op op, Memory memory) {
  if (!compress::is_compressed(rule.choice.algorithm)) return rule.choice.algorithm;
  const bool in_streams = memory == Memory::cuda && lane.in_streams && algorithms::compresses_in_streams(op);
  const bool applies = (memory == Memory::host || lane.staged || in_streams) && (is_collective(op) || rule.op);
  return applies ? rule.choice.algorithm : std::string{};
}

/// Algorithms over messages run on host memory, which includes staged operations.
bool has_algorithm(const LaneState& lane, Op op, Memory memory, const std::string& algorithm) {
  if (algorithm == algorithms::native || lane.filled->has_own(op, algorithm)) return true;
  const bool in_streams =
      lane.in_streams && compress::is_compressed(algorithm) && algorithms::compresses_in_streams(op);
  return (memory == Memory::host || lane.staged || in_streams) && algorithms::find(op, algorithm);
}

compress::Permission permission_of(const Rules::Rule* rule) {
  if (!rule || !compress::is_compressed(rule->choice.algorithm)) return {};
  return compress::Permission::parse(std::string_view(rule->choice.algorithm).substr(1));
}

bool covers_all(std::int64_t from, std::int64_t to) { return from == 0 && to == INT64_MAX; }

/// "native" leaves the choice to the lane, which also has a fallback where the library lacks a type.
std::string algorithm_of(const Choice& choice) {
  return choice.algorithm == algorithms::native ? std::string{} : choice.algorithm;
}

constexpr std::size_t most_candidates = 8;

/// Tuning leaves out routes that take ten times as long as the fastest.
constexpr double unmeasured_ratio = 10;

/// The fastest route of each backend first, then the others by their time: when conditions change, routes of one
/// library mostly change alike. A backend that is too slow to be in the cell may be the fastest once the others' link
/// is slow.
std::vector<route::Timing> diverse(const route::Cell& cell, const Lanes& lanes, Op op, Memory memory) {
  std::vector<route::Timing> first, others;
  const auto seen = [&first](std::string_view backend) {
    return std::any_of(first.begin(), first.end(),
                       [&](const route::Timing& one) { return one.route.backend == backend; });
  };
  for (const route::Timing& timing : cell.routes) (seen(timing.route.backend) ? others : first).push_back(timing);
  const double slow = unmeasured_ratio * cell.routes.front().median_us;
  for (const auto& lane : lanes) {
    if (lane->moves(op, memory) && !seen(lane->name))
      first.push_back({{lane->name, std::string(algorithms::native)}, slow, slow, slow, 0});
  }
  first.insert(first.end(), others.begin(), others.end());
  return first;
}

}  // namespace

std::int64_t tensor_bytes(const Call& call, int ranks) noexcept {
  const auto element = static_cast<std::int64_t>(size_of(call.dtype));
  switch (call.op) {
    case Op::gather: return call.in_count * ranks * element;
    case Op::scatter: return call.out_count * ranks * element;
    case Op::reduce: return call.in_count * element;                    // only the root has an output
    default: return std::max(call.in_count, call.out_count) * element;  // all_gatherv: every rank knows all counts
  }
}

/// A value that is equal on all ranks. Used where only one rank knows every size.
std::int64_t Routing::equal_bytes(const Call& call, int ranks) noexcept {
  return has_local_counts(call.op) && ranks > 1 ? nominal_v_bytes : tensor_bytes(call, ranks);
}

bool Routing::by_size(Op op, Memory memory) const noexcept {
  const Steps& steps = of(op, memory, route::DTypeClass::any);
  if (std::any_of(steps.begin(), steps.end(), [](const Step& step) { return step.route.lane->ordered_on_device(); }))
    return false;
  return std::any_of(steps.begin(), steps.end(), [&](const Step& step) {
    return step.route.lane != steps.front().route.lane || step.route.algorithm != steps.front().route.algorithm;
  });
}

bool Routing::splits_messages(Memory memory) const noexcept {
  const Steps& steps = of(Op::send, memory, route::DTypeClass::any);
  return std::any_of(steps.begin(), steps.end(),
                     [&](const Step& step) { return step.route.lane != steps.front().route.lane; });
}

Routing::Routing(const RoutingSources& sources, const Lanes& lanes) {
  for (const Memory memory : {Memory::host, Memory::cuda}) {
    for (int i = 0; i < op_count; ++i) {
      for (int c = 0; c < route::dtype_class_count; ++c) {
        const auto op = static_cast<Op>(i);
        const auto dtype = static_cast<route::DTypeClass>(c);
        if (reduces(op) == (dtype == route::DTypeClass::any)) continue;  // this combination never occurs
        steps_[static_cast<std::size_t>(memory)][static_cast<std::size_t>(i)][static_cast<std::size_t>(c)] =
            steps_for(op, memory, dtype, sources, lanes);
      }
    }
  }
}

Routing::Steps Routing::steps_for(Op op, Memory memory, route::DTypeClass dtype, const RoutingSources& sources,
                                  const Lanes& lanes) {
  Steps steps;
  for (const Rules* rules : {&sources.of_comm, &sources.of_context}) {
    for (const Rules::Rule& rule : rules->list()) {
      if (!rule.fits(op, memory, sources.exact)) continue;
      if (rule.choice.backend == "auto") {  // the table decides, with what this rule allows
        add_rows(steps, op, memory, dtype, sources, lanes, &rule);
        continue;
      }
      LaneState* lane = lane_named(lanes, rule.choice.backend, op, memory);
      if (!lane) continue;
      steps.push_back({rule.from, rule.to, {lane, algorithm_of(rule, *lane, op, memory), RouteReason::rule}});
      if (covers_all(rule.from, rule.to)) return steps;
    }
  }
  if (add_rows(steps, op, memory, dtype, sources, lanes, nullptr)) return steps;  // they cover all sizes
  if (LaneState* lane = built_in_choice(lanes, op, memory))
    steps.push_back({0, INT64_MAX, {lane, {}, RouteReason::fallback}});
  return steps;
}

bool Routing::add_rows(Steps& steps, Op op, Memory memory, route::DTypeClass dtype, const RoutingSources& sources,
                       const Lanes& lanes, const Rules::Rule* allowing) {
  if (!sources.table || sources.shape == route::Shape{}) return false;  // a comm of one rank needs no rows
  const auto usable = [&](const Choice& choice) {
    const LaneState* lane = lane_named(lanes, choice.backend, op, memory);
    return lane && has_algorithm(*lane, op, memory, choice.algorithm);
  };
  const route::Chosen chosen =
      route::choose(*sources.table, op, memory, dtype, sources.shape, usable, permission_of(allowing), sources.exact);
  if (chosen.ranges.empty()) return false;
  if (chosen.shape != sources.shape) fallback_shape_ = chosen.shape;
  for (const route::SizeRange& range : chosen.ranges) {
    const std::int64_t from = std::max(range.from, allowing ? allowing->from : 0),
                       to = std::min(range.to, allowing ? allowing->to : INT64_MAX);
    if (from > to) continue;
    const Route route{lane_named(lanes, range.route.backend, op, memory), algorithm_of(range.route),
                      RouteReason::table};
    Step* const last = steps.empty() ? nullptr : &steps.back();
    // What one route carries at all sizes needs no look at the size
    if (last && last->to == from - 1 && last->route == route) {
      last->to = to;
    } else {
      steps.push_back({from, to, route});
    }
  }
  return true;
}

std::vector<MeasuredRange> Routing::measured_ranges(Op op, route::DTypeClass dtype, const RoutingSources& sources,
                                                    const Lanes& lanes) const {
  constexpr Memory memory = Memory::host;
  std::vector<MeasuredRange> ranges;
  if (!sources.table || sources.shape == route::Shape{}) return ranges;
  const auto usable = [&](const Choice& choice) {
    const LaneState* lane = lane_named(lanes, choice.backend, op, memory);
    return lane && has_algorithm(*lane, op, memory, choice.algorithm) && !compress::is_compressed(choice.algorithm);
  };
  const route::Chosen chosen = route::choose(*sources.table, op, memory, dtype, sources.shape, usable);
  const bool stands_in = chosen.shape != sources.shape || chosen.dtype != dtype;
  for (const Step& step : of(op, memory, dtype)) {
    if (step.route.reason != RouteReason::table || compress::is_compressed(step.route.algorithm)) continue;
    for (std::size_t i = 0; i < chosen.cells.size(); ++i) {
      const route::Cell& cell = *chosen.cells[i];
      const std::int64_t low = i == 0 ? 0 : route::border(chosen.cells[i - 1]->key.bytes, cell.key.bytes) + 1;
      const std::int64_t high =
          i + 1 == chosen.cells.size() ? INT64_MAX : route::border(cell.key.bytes, chosen.cells[i + 1]->key.bytes);
      MeasuredRange range{std::max(low, step.from), std::min(high, step.to), {}};
      if (range.from > range.to) continue;
      const auto is_choice = [&](const route::Timing& timing) {
        return timing.route.backend == step.route.lane->name && algorithm_of(timing.route) == step.route.algorithm;
      };
      const auto found = std::find_if(cell.routes.begin(), cell.routes.end(), is_choice);
      const route::Timing& choice = found == cell.routes.end() ? cell.routes.front() : *found;
      range.candidates.push_back({step.route, std::llround(choice.median_us * 1000), false});
      for (const route::Timing& timing : diverse(cell, lanes, op, memory)) {
        if (range.candidates.size() == most_candidates) break;
        if (is_choice(timing) || !usable(timing.route)) continue;
        const bool tied = stands_in ? timing.median_us < 2 * choice.median_us : timing.low_us < 0.9 * choice.high_us;
        range.candidates.push_back(
            {{lane_named(lanes, timing.route.backend, op, memory), algorithm_of(timing.route), RouteReason::table},
             std::llround(timing.median_us * 1000),
             tied});
      }
      ranges.push_back(std::move(range));
    }
  }
  return ranges;
}

}  // namespace medley::core
