#include "engine/online_routes.hpp"

#include <algorithm>
#include <cmath>

#include "base/ticks.hpp"
#include "engine/comm_state.hpp"
#include "engine/internal_tags.hpp"

namespace medley::core {
namespace {

using route::OnlineDecider;

// How long a window should take. Each peer costs a message sent and one received, a few microseconds together and well
// below half a percent of that. A link that gets a hundred times slower makes the windows under way last a hundred
// times as long, so they are not longer.
constexpr std::int64_t shortest_window_ns = 5'000'000, window_ns_per_peer = 2'500'000;
constexpr std::uint32_t fewest_operations = 4, most_operations = 1 << 16, first_operations = 8, most_stretch = 64;
constexpr std::uint32_t shuffled_operations = 3;  // short windows, for tests

constexpr std::int64_t no_time = INT64_MAX;  // it prevails: what one rank does not know counts for none
constexpr std::uint64_t decision_lag = OnlineDecider::lag;

/// Whether no rank completes the operation before all have started it. Then the rank that came last has the shortest
/// time, and that is the time of the operation itself; elsewhere a rank may be done early, and the longest time counts.
constexpr bool waits_for_all(Op op) { return !rooted(op); }

std::int64_t ns_of(std::uint64_t ticks_taken) {
  return std::max<std::int64_t>(1, std::llround(static_cast<double>(ticks_taken) * ns_per_tick()));
}

}  // namespace

std::unique_ptr<OnlineRoutes> OnlineRoutes::make(const CommState& comm, const RoutingSources& sources, Mode mode) {
  LaneState* const lane = exchange_lane(comm);
  // Automatic fusion decides what travels together before there is a route.
  if (!sources.table || comm.size == 1 || !lane || comm.auto_fuse) return nullptr;
  auto made = std::make_unique<OnlineRoutes>();
  made->lane_ = lane;
  made->mode_ = mode;
  made->ranks_ = comm.size;
  made->window_ns_ = std::max(shortest_window_ns, window_ns_per_peer * (comm.size - 1));
  for (int i = 1; i < comm.size; ++i) made->others_.push_back((comm.rank + i) % comm.size);
  std::vector<route::OnlineSlot> slots;
  for (int i = 0; i < op_count; ++i) {
    const auto op = static_cast<Op>(i);
    if (!is_collective(op) || is_v_collective(op)) continue;
    for (int c = 0; c < route::dtype_class_count; ++c) {
      const auto dtype = static_cast<route::DTypeClass>(c);
      if (reduces(op) == (dtype == route::DTypeClass::any)) continue;
      made->add_slots(op, dtype, comm.routing, sources, comm.lanes, slots);
    }
  }
  if (slots.empty()) return nullptr;
  made->decider_ = std::make_unique<OnlineDecider>(std::move(slots), mode);
  return made;
}

void OnlineRoutes::add_slots(Op op, route::DTypeClass dtype, const Routing& routing, const RoutingSources& sources,
                             const std::vector<std::unique_ptr<LaneState>>& lanes,
                             std::vector<route::OnlineSlot>& slots) {
  for (MeasuredRange& range : routing.measured_ranges(op, dtype, sources, lanes)) {
    if (range.candidates.size() < 2) continue;
    Slot slot{.op = op, .dtype = dtype, .from = range.from, .to = range.to};
    route::OnlineSlot known;
    for (std::size_t c = 0; c < range.candidates.size(); ++c) {
      MeasuredRange::Candidate& candidate = range.candidates[c];
      Route in_use = candidate.route, tried = candidate.route;
      if (c > 0) in_use.reason = RouteReason::online;
      tried.reason = RouteReason::trial;
      std::string text = in_use.lane->name + (in_use.algorithm.empty() ? "" : "/" + in_use.algorithm);
      slot.candidates.push_back({std::move(in_use), std::move(tried), std::move(text)});
      known.expected_ns.push_back(candidate.expected_ns);
      if (candidate.tied) known.tied |= 1u << c;
    }
    slot.expected_ns = known.expected_ns.front();
    by_call_[static_cast<std::size_t>(op)][static_cast<std::size_t>(dtype)].push_back(
        static_cast<std::uint32_t>(slots_.size()));
    slots_.push_back(std::move(slot));
    slots.push_back(std::move(known));
  }
}

std::uint32_t OnlineRoutes::slot_of(const Call& call) const noexcept {
  const auto& places =
      by_call_[static_cast<std::size_t>(call.op)][static_cast<std::size_t>(route::class_of(call.op, call.dtype))];
  if (places.empty()) return OnlineTicket::none;
  const std::int64_t bytes = tensor_bytes(call, ranks_);
  for (const std::uint32_t place : places) {
    if (bytes >= slots_[place].from && bytes <= slots_[place].to) return place;
  }
  return OnlineTicket::none;
}

OnlineRoutes::Decision OnlineRoutes::next(std::uint32_t slot, std::uint64_t sequence, OnlineTicket& ticket) {
  ticket = {.slot = slot, .sequence = sequence};
  Decision decision;
  if (waiting_ == 0) {
    decision = try_route(ticket);
  } else {  // behind operations whose windows may have room for it or not
    decision.open = {query_.lock(), 0};
    if (!decision.open) throw_dropped_exchange(*lane_, "times");
  }
  if (decision.open) ++waiting_;
  return decision;
}

OnlineRoutes::Decision OnlineRoutes::route_of(OnlineTicket& ticket) {
  Decision decision = try_route(ticket);
  if (!decision.open) --waiting_;
  return decision;
}

/// Operations take their places in windows in order, and a window begins only when it is planned.
OnlineRoutes::Decision OnlineRoutes::try_route(OnlineTicket& ticket) {
  if (windows_.empty() || windows_.back().operations == windows_.back().length) {
    if (auto query = ask_for_next()) return {nullptr, {std::move(query), 0}};
    begin_window(ticket.sequence);
  }
  return {&assign_window_slot(ticket), {}};
}

/// What the next window needs to be planned; null if it is there.
std::shared_ptr<ValueQuery> OnlineRoutes::ask_for_next() {
  if (windows_.empty() || windows_.back().number + 1 < decision_lag) return nullptr;
  std::shared_ptr<ValueQuery> query = query_.lock();
  if (!agreed_) {
    agreed_ =
        std::make_shared<AgreedValues>(AgreedValues{false, window(windows_.back().number + 1 - decision_lag).sent});
    query_ = query = std::make_shared<ValueQuery>(*lane_, time_exchange_tag, agreed_);
    query->ask(others_);
  }
  if (agreed_->known || (query && query->answered())) return nullptr;
  if (!query) throw_dropped_exchange(*lane_, "times");
  return query;
}

void OnlineRoutes::begin_window(std::uint64_t sequence) {
  Window next;
  next.number = windows_.empty() ? 0 : windows_.back().number + 1;
  next.first_sequence = sequence;
  next.begun = ticks();
  if (!windows_.empty()) windows_.back().elapsed_ns = ns_of(next.begun - windows_.back().begun);
  const Window* const past = agreed_ ? &window(next.number - decision_lag) : nullptr;
  route::WindowResult result;
  if (past) {
    result = result_of(*past);
    for (const route::TrialOutcome& decision : decider_->take(past->plan, result)) report(decision, next);
  }
  next.length = next_length(past, result);
  next.counts.resize(slots_.size(), 0);
  std::vector<std::uint32_t> expected = next.counts;
  if (!windows_.empty()) {  // as in the last window
    const Window& last = windows_.back();
    for (std::size_t s = 0; s < slots_.size(); ++s) {
      if (last.counts[s] > 0)
        expected[s] =
            std::max(1u, static_cast<std::uint32_t>(std::uint64_t{last.counts[s]} * next.length / last.length));
    }
  }
  next.plan = decider_->plan(expected);
  next.times_ns.assign(next.plan.timed.size(), -1);
  next.due.resize(slots_.size());
  for (std::size_t i = next.plan.timed.size(); i-- > 0;) {  // those of a slot follow each other
    next.due[next.plan.timed[i].slot] = {next.plan.timed[i].occurrence, static_cast<std::uint32_t>(i)};
  }
  if (past) windows_.pop_front();
  agreed_.reset();
  windows_.push_back(std::move(next));
}

/// By values that are equal on all ranks.
std::uint32_t OnlineRoutes::next_length(const Window* past, const route::WindowResult& result) {
  if (mode_ == Mode::shuffle) return shuffled_operations;
  if (!past) return first_operations;
  const auto known = static_cast<std::size_t>(
      std::count_if(result.times_ns.begin(), result.times_ns.end(), [](std::int64_t time) { return time >= 0; }));
  if (2 * known < result.times_ns.size()) {
    stretch_ = std::min(most_stretch, 2 * stretch_);
  } else if (past->number % 64 == 0) {
    stretch_ = std::max(1u, stretch_ / 2);
  }
  const std::int64_t in_time = window_ns_ * stretch_ * past->length / std::max<std::int64_t>(1, result.elapsed_ns);
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(in_time, fewest_operations, std::min(most_operations, 4 * past->length)));
}

/// A window after it has ended, so that async operations have had time to complete.
void OnlineRoutes::tell(Window& about) {
  about.sent.assign(1 + OnlineDecider::most_timed, no_time);
  about.sent[0] = about.elapsed_ns;
  for (std::size_t i = 0; i < about.times_ns.size(); ++i) {
    if (about.times_ns[i] < 0) continue;
    about.sent[1 + i] = waits_for_all(slots_[about.plan.timed[i].slot].op) ? -about.times_ns[i] : about.times_ns[i];
  }
  lane_->value_exchange.tell(*lane_->filled, time_exchange_tag, about.sent, others_);
}

route::WindowResult OnlineRoutes::result_of(const Window& past) const {
  route::WindowResult result{agreed_->largest[0], past.expected_ns, {}};
  for (std::size_t i = 0; i < past.plan.timed.size(); ++i) {
    const std::int64_t largest = agreed_->largest[1 + i];
    if (waits_for_all(slots_[past.plan.timed[i].slot].op)) {
      result.times_ns.push_back(largest > 0 ? -1 : -largest);  // the shortest, or missing on a rank
    } else {
      result.times_ns.push_back(largest == no_time ? -1 : largest);
    }
  }
  return result;
}

const Route& OnlineRoutes::assign_window_slot(OnlineTicket& ticket) {
  Window& current = windows_.back();
  const Slot& slot = slots_[ticket.slot];
  const std::uint32_t occurrence = current.counts[ticket.slot]++;
  ticket.window = current.number;
  current.expected_ns += slot.expected_ns;
  if (++current.operations == current.length && current.number > 0) tell(window(current.number - 1));
  Window::Due& due = current.due[ticket.slot];
  if (due.occurrence != occurrence) return slot.candidates[current.plan.current[ticket.slot]].in_use;
  const std::vector<route::TimedOperation>& all = current.plan.timed;
  const route::TimedOperation& timed = all[due.index];
  ticket.timed = static_cast<std::int32_t>(due.index);
  const bool more = due.index + 1 < all.size() && all[due.index + 1].slot == ticket.slot;
  due = more ? Window::Due{all[due.index + 1].occurrence, due.index + 1} : Window::Due{};
  const Candidate& candidate = slot.candidates[timed.candidate];
  return timed.trial ? candidate.tried : candidate.in_use;
}

void OnlineRoutes::note(const OnlineTicket& ticket, std::uint64_t ticks_taken) {
  if (windows_.empty() || ticket.window < windows_.front().number) return;
  window(ticket.window).times_ns[static_cast<std::size_t>(ticket.timed)] = ns_of(ticks_taken);
}

void OnlineRoutes::report(const route::TrialOutcome& decision, const Window& from_window) {
  const Slot& slot = slots_[decision.slot];
  decisions_.push_back({decision,
                        slot.op,
                        slot.dtype,
                        slot.from,
                        slot.to,
                        from_window.first_sequence,
                        slot.candidates[decision.from].text,
                        slot.candidates[decision.to].text,
                        {}});
  decisions_.back().reason = reason_of(decisions_.back());
}

}  // namespace medley::core
