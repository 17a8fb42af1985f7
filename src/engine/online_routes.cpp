#include "engine/online_routes.hpp"

#include <algorithm>
#include <cmath>

#include "base/ticks.hpp"
#include "engine/comm_state.hpp"

namespace medley::core {
namespace {

using route::OnlineDecider;

// A window's operations take this long by the table: sending and receiving one message per peer costs a few microseconds each, well
// below a quarter of a percent of that.
constexpr std::int64_t shortest_window_ns = 20'000'000, window_ns_per_peer = 4'000'000;
constexpr std::uint32_t fewest_operations = 4, most_operations = 1 << 16;
constexpr std::uint32_t shuffled_operations = 3;   // short windows, for tests

constexpr std::int64_t no_time = INT64_MAX;         // it prevails: what one rank does not know counts for none
constexpr std::uint64_t decision_lag = OnlineDecider::lag;
constexpr int times_tag = -1 - algorithms::collective_tags - 6;   // size_agreement.cpp has the six before it
static_assert(algorithms::collective_tags + 7 <= internal_tags);

/// Whether no rank completes the operation before all have started it. Then the rank that came last has the shortest time, and
/// that is the time of the operation itself; elsewhere a rank may be done early, and the longest time counts.
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
    if (!is_collective(op) || is_v_form(op)) continue;
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
                             const std::vector<std::unique_ptr<LaneState>>& lanes, std::vector<route::OnlineSlot>& slots) {
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
    by_call_[static_cast<std::size_t>(op)][static_cast<std::size_t>(dtype)].push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.push_back(std::move(slot));
    slots.push_back(std::move(known));
  }
}

std::uint32_t OnlineRoutes::slot_of(const Call& call) const noexcept {
  const auto& places = by_call_[static_cast<std::size_t>(call.op)][static_cast<std::size_t>(route::class_of(call.op, call.dtype))];
  if (places.empty()) return OnlineTicket::none;
  const std::int64_t bytes = tensor_bytes(call, ranks_);
  for (const std::uint32_t place : places) {
    if (bytes >= slots_[place].from && bytes <= slots_[place].to) return place;
  }
  return OnlineTicket::none;
}

bool OnlineRoutes::decides(const Call& call, const Route& admitted) const noexcept {
  return admitted.reason == RouteReason::table && call.memory == Memory::host && call.algorithm.empty() && !call.deterministic &&
         slot_of(call) != OnlineTicket::none;
}

OnlineRoutes::Decision OnlineRoutes::next(const Call& call, std::uint64_t sequence, OnlineTicket& ticket) {
  if (windows_.empty() || ends(windows_.back())) begin_window(sequence);
  Window& current = windows_.back();
  std::shared_ptr<ValueQuery> query = current.query.lock();
  if (current.operations == 0 && current.number >= decision_lag) {
    current.agreed = std::make_shared<AgreedValues>(AgreedValues{false, window(current.number - decision_lag).told});
    current.query = query = std::make_shared<ValueQuery>(*lane_, times_tag, current.agreed);
    query->ask(others_);
  }
  const std::uint32_t slot = slot_of(call);
  ticket = {.window = current.number, .slot = slot, .occurrence = current.counts[slot]++};
  ++current.operations;
  current.expected_ns += slots_[slot].expected_ns;
  if (ends(current) && current.number > 0) tell(window(current.number - 1));
  if (try_plan(current)) return {&planned_route(ticket)};
  if (!query) throw Error(ErrorKind::system, "what decides its route was asked by an operation that was not issued after all");
  ++current.unresolved;
  return {nullptr, {std::move(query), 0}};
}

void OnlineRoutes::begin_window(std::uint64_t sequence) {
  Window begun;
  begun.number = windows_.empty() ? 0 : windows_.back().number + 1;
  begun.first_sequence = sequence;
  begun.begun = ticks();
  begun.counts.resize(slots_.size(), 0);
  if (!windows_.empty()) windows_.back().elapsed_ns = ns_of(begun.begun - windows_.back().begun);
  windows_.push_back(std::move(begun));
}

/// By values that are equal on all ranks.
bool OnlineRoutes::ends(const Window& window) const {
  if (mode_ == Mode::shuffle) return window.operations >= shuffled_operations;
  return window.operations >= most_operations || (window.operations >= fewest_operations && window.expected_ns >= window_ns_);
}

/// A window after it has ended, so that async operations have had time to complete. Always the same number of values: a rank whose plan is
/// not known yet has to send some too.
void OnlineRoutes::tell(Window& about) {
  about.told.assign(1 + OnlineDecider::most_timed, no_time);
  about.told[0] = about.elapsed_ns;
  for (std::size_t i = 0; i < about.times_ns.size(); ++i) {
    if (about.times_ns[i] < 0) continue;
    about.told[1 + i] = waits_for_all(slots_[about.plan.timed[i].slot].op) ? -about.times_ns[i] : about.times_ns[i];
  }
  lane_->value_exchange.tell(*lane_->filled, times_tag, about.told, others_);
}

/// Plans in order of the windows; an operation's window is planned before any later operation takes its lane order.
bool OnlineRoutes::try_plan(Window& window) {
  if (window.planned) return true;
  if (window.number > 0 && !this->window(window.number - 1).planned) return false;
  if (window.agreed) {
    const auto query = window.query.lock();
    if (!window.agreed->known && !(query && query->answered())) return false;
  }
  plan(window);
  return true;
}

void OnlineRoutes::plan(Window& next) {
  if (next.agreed) {
    const Window& past = window(next.number - decision_lag);
    route::WindowResult result{next.agreed->largest[0], past.expected_ns, {}};
    for (std::size_t i = 0; i < past.plan.timed.size(); ++i) {
      const std::int64_t largest = next.agreed->largest[1 + i];
      if (waits_for_all(slots_[past.plan.timed[i].slot].op)) {
        result.times_ns.push_back(largest > 0 ? -1 : -largest);   // the shortest, or missing on a rank
      } else {
        result.times_ns.push_back(largest == no_time ? -1 : largest);
      }
    }
    for (const route::RouteDecision& decision : decider_->take(past.plan, result)) report(decision, next);
  }
  next.plan = decider_->plan(next.number == 0 ? std::vector<std::uint32_t>(slots_.size(), 0) : window(next.number - 1).counts);
  next.times_ns.assign(next.plan.timed.size(), -1);
  next.planned = true;
  while (windows_.front().number + decision_lag <= next.number && windows_.front().unresolved == 0) windows_.pop_front();   // other references stay valid
}

const Route& OnlineRoutes::planned_route(OnlineTicket& ticket) {
  const Window& its = window(ticket.window);
  const Slot& slot = slots_[ticket.slot];
  for (std::size_t i = 0; i < its.plan.timed.size(); ++i) {
    const route::TimedOperation& timed = its.plan.timed[i];
    if (timed.slot != ticket.slot || timed.occurrence != ticket.occurrence) continue;
    ticket.timed = static_cast<std::int32_t>(i);
    const Candidate& candidate = slot.candidates[timed.candidate];
    return timed.trial ? candidate.tried : candidate.in_use;
  }
  return slot.candidates[its.plan.current[ticket.slot]].in_use;
}

const Route& OnlineRoutes::route_of(OnlineTicket& ticket) {
  Window& its = window(ticket.window);
  if (!try_plan(its)) throw Error(ErrorKind::system, "its route was asked for before the ranks had agreed on it");
  --its.unresolved;
  return planned_route(ticket);
}

void OnlineRoutes::note(const OnlineTicket& ticket, std::uint64_t ticks_taken) {
  if (windows_.empty() || ticket.window < windows_.front().number) return;
  window(ticket.window).times_ns[static_cast<std::size_t>(ticket.timed)] = ns_of(ticks_taken);
}

void OnlineRoutes::report(const route::RouteDecision& decision, const Window& from_window) {
  const Slot& slot = slots_[decision.slot];
  news_.push_back({decision, slot.op, slot.dtype, slot.from, slot.to, from_window.first_sequence, slot.candidates[decision.from].text,
                   slot.candidates[decision.to].text, {}});
  news_.back().reason = reason_of(news_.back());
}

}  // namespace medley::core
