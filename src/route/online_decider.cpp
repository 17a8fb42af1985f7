#include "route/online_decider.hpp"

#include <algorithm>
#include <numeric>

namespace medley::route {
namespace {

using std::int64_t;
using std::size_t;
using std::uint32_t;
using std::uint8_t;

constexpr int64_t second = 1'000'000'000;
constexpr size_t slots_in_a_window = 8;
constexpr uint32_t timed_of_a_slot = 4;  // of the route in use, and as many of a candidate
static_assert(slots_in_a_window * 2 * timed_of_a_slot == OnlineDecider::most_timed);

// One percent of the elapsed time may be spent; what a quiet minute saves up is kept.
constexpr int64_t budget_divisor = 100;
constexpr int64_t most_budget = 60 * second / budget_divisor;

constexpr int64_t first_pause = second, longest_pause = 8 * second;
constexpr int64_t first_ban = 10 * second;
constexpr size_t verified_windows = 5, most_paces = 512;
constexpr int64_t verified_time = second;
constexpr int most_rounds = 2;     // of trials after a drift: noise may hide a faster route once
constexpr int steady_windows = 4;  // until the job's own times replace those of the table

/// Clearly faster: by a tenth. The same distance back keeps two routes from alternating.
bool clearly_faster(int64_t time, int64_t than) { return time * 10 < than * 9; }

/// A sign test with an error of at most 2 %: 6 of 6, 8 of 9, 10 of 12 or 12 of 15.
bool surely_faster(int faster, int slower) { return slower <= 3 && faster >= 6 + 2 * slower; }
bool surely_not_faster(int faster, int slower) { return slower > (faster == 0 ? 1 : 3); }

/// Connecting takes less than this: longer operations need no warming up, and are tried one at a time.
constexpr int64_t long_operation = 10'000'000;

bool beyond(int64_t time, int64_t usual, int64_t numerator, int64_t denominator) {
  return time * denominator > usual * numerator || time * numerator < usual * denominator;
}

int64_t median(std::vector<int64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

OnlineDecider::OnlineDecider(std::vector<OnlineSlot> slots, Mode mode)
    : slots_(std::move(slots)), states_(slots_.size()), mode_(mode) {
  for (size_t s = 0; s < slots_.size(); ++s) {
    const OnlineSlot& slot = slots_[s];
    SlotState& state = states_[s];
    state.usual_ns = state.latest_ns = slot.expected_ns.front();
    state.pause_ns = state.recheck_pause_ns = first_pause;
    state.ratio_permille.resize(slot.expected_ns.size(), 0);
    state.banned_until.resize(slot.expected_ns.size(), 0);
    if (slot.tied == 0) continue;
    std::vector<uint8_t> tied;
    for (size_t c = 1; c < slot.expected_ns.size(); ++c) {
      if (slot.tied >> c & 1) tied.push_back(static_cast<uint8_t>(c));
    }
    begin_trials(static_cast<uint32_t>(s), TrialCause::unsure, std::move(tied));
  }
}

WindowPlan OnlineDecider::plan(const std::vector<uint32_t>& counts) {
  WindowPlan plan;
  plan.switches = switches_;
  for (const SlotState& state : states_) plan.current.push_back(state.current);
  std::vector<uint32_t> active;
  for (uint32_t s = 0; s < counts.size(); ++s) {
    if (counts[s] > 0) active.push_back(s);
  }
  const auto weight = [&](uint32_t s) { return counts[s] * states_[s].latest_ns; };
  std::stable_sort(active.begin(), active.end(), [&](uint32_t a, uint32_t b) { return weight(a) > weight(b); });
  const size_t groups = (active.size() + slots_in_a_window - 1) / slots_in_a_window;  // they take turns
  const size_t begin = groups ? windows_ % groups * slots_in_a_window : 0;
  for (size_t i = begin; i < std::min(begin + slots_in_a_window, active.size()); ++i)
    time_slot(active[i], counts[active[i]], plan);
  ++windows_;
  return plan;
}

/// How much longer than the route in use a candidate may take: as last measured, or as the table says.
int64_t OnlineDecider::extra_ns(const SlotState& state, const OnlineSlot& slot) const {
  const uint8_t candidate = state.trial.candidate;
  const int64_t least = state.latest_ns / 10;
  if (const int64_t permille = state.ratio_permille[candidate])
    return std::max(least, (permille - 1000) * state.latest_ns / 1000);
  // What made one route slow may not concern another: the first operation of a trial shows it.
  if (state.trial.cause == TrialCause::drift) return std::max(least, slot.expected_ns[candidate] - state.latest_ns);
  const int64_t own_us = std::max<int64_t>(1, slot.expected_ns[state.current] / 1000),
                its_us = slot.expected_ns[candidate] / 1000;
  return std::max(least, (its_us - own_us) * state.latest_ns / own_us);
}

/// Spreads timed operations over the window. An operation of a trial is next to one of the route in use, before or
/// after it in turn: a program's operations have patterns, such as a slow first one after computing.
void OnlineDecider::time_slot(uint32_t s, uint32_t count, WindowPlan& plan) {
  SlotState& state = states_[s];
  Trial& trial = state.trial;
  const uint32_t places = std::clamp<uint32_t>(count / 2, 1, timed_of_a_slot);
  uint32_t tried = 0;
  int64_t extra = 0;
  if (trial.number) {
    // Two at a time until one was faster; the first of all warms up. So a far slower route is tried three or four
    // times.
    const bool probing = trial.faster == 0;
    const uint32_t at_once = state.latest_ns >= long_operation ? 1 : 2;
    tried = probing ? (trial.in_flight > 0 ? 0 : std::min(at_once, places)) : places;
    extra = extra_ns(state, slots_[s]);
    tried =
        static_cast<uint32_t>(std::min<int64_t>(tried, std::max<int64_t>(0, budget_ns_) / std::max<int64_t>(1, extra)));
  }
  const auto time = [&](uint32_t occurrence, bool trying) {
    if (!trying) return plan.timed.push_back({s, occurrence, state.current, 0, 0});
    plan.timed.push_back({s, occurrence, trial.candidate, trial.number, extra});
    budget_ns_ -= extra;
    ++trial.in_flight;
  };
  if (count == 1) return time(0, tried > 0 && windows_ % 2 == 1);
  const uint32_t span = count / places;
  const uint32_t shift = span > 2 ? static_cast<uint32_t>(windows_ % (span - 1)) : 0;
  for (uint32_t i = 0; i < places; ++i) {
    const uint32_t at = i * span + shift;
    const bool candidate_first = (windows_ + i) % 2 == 1;
    if (i >= tried) {
      time(at, false);
    } else {
      time(at, candidate_first);
      time(at + 1, !candidate_first);
    }
  }
}

std::vector<TrialOutcome> OnlineDecider::take(const WindowPlan& planned, const WindowResult& result) {
  std::vector<TrialOutcome> decided;
  now_ns_ += result.elapsed_ns;
  budget_ns_ = std::min(most_budget, budget_ns_ + result.elapsed_ns / budget_divisor);
  if (mode_ == Mode::shuffle) {
    shuffle(result);
    return decided;
  }
  verify(planned, result, decided);
  for (size_t first = 0, end = 0; first < planned.timed.size(); first = end) {
    while (end < planned.timed.size() && planned.timed[end].slot == planned.timed[first].slot) ++end;
    settle_slot(planned.timed[first].slot, planned, result, first, end, decided);
  }
  const bool any = std::any_of(decided.begin(), decided.end(),
                               [](const TrialOutcome& one) { return one.result == TrialOutcome::Result::switched; });
  if (any) {
    ++switches_;
    int64_t begun = now_ns_;
    for (const TrialOutcome& one : decided) {
      if (one.result == TrialOutcome::Result::switched) begun = std::min(begun, one.begun_ns);
    }
    verification_ = {{}, now_ns_, pace_since(begun)};
    std::copy_if(decided.begin(), decided.end(), std::back_inserter(verification_.switched),
                 [](const TrialOutcome& one) { return one.result == TrialOutcome::Result::switched; });
    paces_.clear();
  }
  return decided;
}

void OnlineDecider::settle_slot(uint32_t s, const WindowPlan& planned, const WindowResult& result, size_t first,
                                size_t end, std::vector<TrialOutcome>& decided) {
  SlotState& state = states_[s];
  const bool same_route = planned.current[s] == state.current;
  std::vector<int64_t> own;
  for (size_t i = first; i < end; ++i) {
    if (planned.timed[i].trial == 0 && result.times_ns[i] >= 0) own.push_back(result.times_ns[i]);
  }
  const bool fresh = same_route && !own.empty();
  if (fresh) state.latest_ns = std::max<int64_t>(1, median(own));
  const int64_t base = own.empty() ? (same_route ? state.latest_ns : 0) : std::max<int64_t>(1, median(own));
  Trial& trial = state.trial;
  for (size_t i = first; i < end; ++i) {
    const TimedOperation& timed = planned.timed[i];
    if (timed.trial == 0) continue;
    const int64_t time = result.times_ns[i];
    const bool known = time >= 0 && base > 0;
    if (known) budget_ns_ += timed.reserved_ns - std::max<int64_t>(0, time - base);  // what it really cost
    if (timed.trial != trial.number) continue;
    --trial.in_flight;
    if (!known || !same_route) continue;
    if (!trial.warm) {
      trial.warm = true;
      if (base < long_operation) continue;
    }
    ++(clearly_faster(time, base) ? trial.faster : trial.slower);
    if (time >= 2 * base && base >= long_operation) ++trial.slower;  // one is enough
    trial.times.push_back(time);
    state.ratio_permille[timed.candidate] = std::max<int64_t>(1, time * 1000 / base);
  }
  if (trial.number) judge_trial(s, decided);
  // A drift does not wait for the end of trials that other conditions gave rise to.
  const bool about_drift =
      trial.number && (trial.cause == TrialCause::drift || trial.cause == TrialCause::unlike_table);
  if (fresh && !about_drift && planned.current[s] == state.current) look_for_cause(s);
}

void OnlineDecider::look_for_cause(uint32_t s) {
  SlotState& state = states_[s];
  if (state.usual_ns == 0) {  // first seen after a switch
    state.usual_ns = state.latest_ns;
    return;
  }
  const bool drifted = state.usual_by_table ? beyond(state.latest_ns, state.usual_ns, 2, 1)
                                            : beyond(state.latest_ns, state.usual_ns, 3, 2);
  state.drifting = drifted ? state.drifting + 1 : 0;
  state.steady = drifted ? 0 : state.steady + 1;
  if (state.usual_by_table && state.steady >= steady_windows) {
    state.usual_ns = state.latest_ns;
    state.usual_by_table = false;
  }
  if (now_ns_ < state.no_trial_before) return;
  if (state.drifting >= 2) {
    std::fill(state.ratio_permille.begin(), state.ratio_permille.end(), 0);  // of other conditions
    // In the order of the candidates: those of other libraries first
    std::vector<uint8_t> all(slots_[s].expected_ns.size());
    std::iota(all.begin(), all.end(), uint8_t{0});
    begin_trials(s, state.usual_by_table ? TrialCause::unlike_table : TrialCause::drift, std::move(all));
  } else if (state.current != 0 && state.trial.number == 0 && now_ns_ >= state.recheck_at) {
    begin_trials(s, TrialCause::recheck, {0});
  }
}

void OnlineDecider::begin_trials(uint32_t s, TrialCause cause, std::vector<uint8_t> candidates) {
  SlotState& state = states_[s];
  std::erase_if(candidates, [&](uint8_t candidate) {
    return candidate == state.current || now_ns_ < state.banned_until[candidate];
  });
  state.trial.cause = cause;
  state.trial.before_ns = state.usual_ns;
  state.trial.seen_ns = state.latest_ns;
  state.trial.begun = now_ns_;
  state.trial.next = std::move(candidates);
  next_trial(s);
}

void OnlineDecider::next_trial(uint32_t s) {
  Trial& trial = states_[s].trial;
  std::vector<uint8_t> next = std::move(trial.next);
  trial = {.cause = trial.cause, .before_ns = trial.before_ns, .seen_ns = trial.seen_ns, .begun = trial.begun};
  while (!next.empty()) {
    trial.candidate = next.front();
    next.erase(next.begin());
    if (2 * extra_ns(states_[s], slots_[s]) > most_budget) continue;  // the budget would never allow it
    trial.number = ++trials_;
    trial.next = std::move(next);
    return;
  }
}

TrialOutcome OnlineDecider::outcome(uint32_t s, TrialOutcome::Result result) const {
  const SlotState& state = states_[s];
  const Trial& trial = state.trial;
  return {result,
          trial.cause,
          s,
          state.current,
          trial.candidate,
          trial.before_ns,
          trial.seen_ns,
          state.latest_ns,
          median(trial.times),
          trial.faster,
          static_cast<int>(trial.times.size()),
          trial.begun};
}

void OnlineDecider::judge_trial(uint32_t s, std::vector<TrialOutcome>& decided) {
  SlotState& state = states_[s];
  Trial& trial = state.trial;
  if (surely_faster(trial.faster, trial.slower)) {
    if (!verification_.switched.empty()) return;  // one change at a time, to see what it does
    decided.push_back(outcome(s, TrialOutcome::Result::switched));
    switch_to(s, trial.candidate);
    return;
  }
  if (!surely_not_faster(trial.faster, trial.slower)) return;
  const bool last = trial.next.empty();
  const bool recheck = trial.cause == TrialCause::recheck;
  if (last) {
    decided.push_back(outcome(s, TrialOutcome::Result::kept));
    state.drifting = state.steady = 0;
    if (recheck) {
      state.recheck_pause_ns = std::min(longest_pause, 2 * state.recheck_pause_ns);
      state.recheck_at = now_ns_ + state.recheck_pause_ns;
    } else {
      state.no_trial_before = now_ns_ + state.pause_ns;
      state.pause_ns = std::min(longest_pause, 2 * state.pause_ns);
      if (trial.cause == TrialCause::unsure || ++state.rounds >= most_rounds) {  // this is how long it takes now
        state.usual_ns = state.latest_ns;
        state.usual_by_table = false;
        state.rounds = 0;
      }
    }
  }
  next_trial(s);
}

void OnlineDecider::switch_to(uint32_t s, uint8_t candidate) {
  SlotState& state = states_[s];
  state.current = candidate;
  state.latest_ns =
      std::max<int64_t>(1, state.trial.times.empty() ? slots_[s].expected_ns[candidate] : median(state.trial.times));
  state.trial = {};
  state.usual_ns = 0;
  state.usual_by_table = false;
  state.drifting = state.steady = state.rounds = 0;
  state.pause_ns = state.recheck_pause_ns = first_pause;
  state.no_trial_before = 0;
  state.recheck_at = now_ns_ + first_pause;
  std::fill(state.ratio_permille.begin(), state.ratio_permille.end(), 0);
}

/// The median of the windows since then; 0 if they are few.
int64_t OnlineDecider::pace_since(int64_t begin) const {
  std::vector<int64_t> since;
  for (const Pace& pace : paces_) {
    if (pace.at >= begin) since.push_back(pace.ns);
  }
  return since.size() < verified_windows ? 0 : median(std::move(since));
}

/// An operation that is faster by itself may slow the job down: it may disturb others that overlap it. So the time of
/// whole windows decides in the end.
void OnlineDecider::verify(const WindowPlan& planned, const WindowResult& result, std::vector<TrialOutcome>& decided) {
  if (planned.switches != switches_ || result.expected_ns <= 0) return;  // of the routes before
  paces_.push_back({now_ns_, result.elapsed_ns / std::max<int64_t>(1, result.expected_ns / 1000)});
  if (paces_.size() > most_paces) paces_.pop_front();
  Verification& under_way = verification_;
  if (under_way.switched.empty() || paces_.size() < verified_windows || now_ns_ < under_way.begun + verified_time)
    return;
  const int64_t after = pace_since(under_way.begun), before = under_way.pace_before;
  const std::vector<TrialOutcome> switched = std::move(under_way.switched);
  under_way = {};
  if (before == 0 || after * 5 <= before * 6) return;
  for (const TrialOutcome& one : switched) {
    SlotState& state = states_[one.slot];
    if (state.current != one.to) continue;
    decided.push_back({TrialOutcome::Result::reverted, one.cause, one.slot, one.to, one.from, one.before_ns,
                       one.seen_ns, before, after, 0, 0, 0});
    state.trial = {};
    switch_to(one.slot, one.from);
    state.banned_until[one.to] = now_ns_ + first_ban;
  }
  ++switches_;
  paces_.clear();
}

void OnlineDecider::shuffle(const WindowResult& result) {
  std::uint64_t hash = 14695981039346656037ull;  // FNV-1a over what the ranks agreed on
  const auto add = [&hash](int64_t value) { hash = (hash ^ static_cast<std::uint64_t>(value)) * 1099511628211ull; };
  add(result.elapsed_ns);
  for (const int64_t time : result.times_ns) add(time);
  for (size_t s = 0; s < states_.size(); ++s) {
    add(static_cast<int64_t>(s));
    states_[s].current = static_cast<uint8_t>((hash >> 32) % slots_[s].expected_ns.size());
  }
  ++switches_;
}

}  // namespace medley::route
