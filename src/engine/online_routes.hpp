// Routes that change in a running job (MEDLEY_ONLINE=1): divides the collectives of a comm into windows, times a few of
// them, exchanges the times with the other ranks, and takes its routes from route::OnlineDecider, which decides alike
// on all of them (docs/proofs.md, "Routes that change in a running job"). Owned by the comm, under the engine's
// lock.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <medley/backend.hpp>
#include <memory>
#include <string>
#include <vector>

#include "engine/online_ticket.hpp"
#include "engine/routing.hpp"
#include "engine/value_exchange.hpp"
#include "route/online_decider.hpp"

namespace medley::core {

class CommState;

/// A decision in words.
struct OnlineDecision {
  route::TrialOutcome decision;
  Op op{};
  route::DTypeClass dtype{};
  std::int64_t from_bytes = 0, to_bytes = 0;
  std::uint64_t sequence = 0;  ///< the comm's collective from which on it applies
  std::string from{}, to{};    ///< routes, as rules spell them
  std::string reason{};
};

/// One sentence: why the route was changed or kept.
std::string reason_of(const OnlineDecision& news);

class MEDLEY_API OnlineRoutes {
 public:
  using Mode = route::OnlineDecider::Mode;
  /// Null where there is nothing to choose: no table, no second route, one rank, or no lane to exchange times.
  static std::unique_ptr<OnlineRoutes> make(const CommState& comm, const RoutingSources& sources, Mode mode);

  /// Whether the route of this call, which names no backend and whose table route is `admitted`, may be decided here:
  /// if it has a slot.
  static bool may_decide(const Call& call, const Route& admitted) noexcept {
    return admitted.reason == RouteReason::table && is_collective(call.op) && call.memory == Memory::host &&
           call.algorithm.empty() && !call.deterministic;
  }
  /// OnlineTicket::none where there is nothing to choose.
  std::uint32_t slot_of(const Call& call) const noexcept;
  struct Decision {
    const Route* route = nullptr;
    OpenRoute open{};  ///< if set, ask again by route_of() once it is answered
  };
  /// The route of an operation that is being issued as the comm's collective of this number; called in the same order
  /// on all ranks.
  Decision next(std::uint32_t slot, std::uint64_t sequence, OnlineTicket& ticket);
  /// The route of the first operation that waits for one, when what it waited for was answered.
  Decision route_of(OnlineTicket& ticket);
  /// A timed operation took this long.
  void note(const OnlineTicket& ticket, std::uint64_t ticks_taken);
  /// The lane that carries the exchange.
  LaneState& lane() const { return *lane_; }
  /// Decisions since the last call.
  std::vector<OnlineDecision> take_decisions() { return std::exchange(decisions_, {}); }

 private:
  struct Candidate {
    Route in_use, tried;  ///< the same with different reasons
    std::string text;
  };
  struct Slot {
    Op op{};
    route::DTypeClass dtype{};
    std::int64_t from = 0, to = 0;
    std::vector<Candidate> candidates{};
    std::int64_t expected_ns = 0;
  };
  struct Window {
    std::uint64_t number = 0, first_sequence = 0;
    std::uint32_t length = 0, operations = 0;  ///< how many it has in the end, and so far
    std::uint64_t begun = 0;                   ///< in ticks
    std::int64_t elapsed_ns = 0, expected_ns = 0;
    std::vector<std::uint32_t> counts{};  ///< operations of each slot
    struct Due {
      std::uint32_t occurrence = UINT32_MAX, index = 0;
    };
    std::vector<Due> due{};  ///< the next timed operation of each slot
    route::WindowPlan plan{};
    std::vector<std::int64_t> times_ns{};  ///< per timed operation, of this rank; negative: not known yet
    std::vector<std::int64_t> sent{};      ///< what this rank sent to the others
  };
  void add_slots(Op op, route::DTypeClass dtype, const Routing& routing, const RoutingSources& sources,
                 const std::vector<std::unique_ptr<LaneState>>& lanes, std::vector<route::OnlineSlot>& slots);
  Window& window(std::uint64_t number) { return windows_[static_cast<std::size_t>(number - windows_.front().number)]; }
  Decision try_route(OnlineTicket& ticket);
  std::shared_ptr<ValueQuery> ask_for_next();
  void begin_window(std::uint64_t sequence);
  std::uint32_t next_length(const Window* past, const route::WindowResult& result);
  route::WindowResult result_of(const Window& past) const;
  void tell(Window& about);
  const Route& assign_window_slot(OnlineTicket& ticket);
  void report(const route::TrialOutcome& decision, const Window& from_window);

  LaneState* lane_ = nullptr;
  Mode mode_{};
  int ranks_ = 0;
  std::int64_t window_ns_ = 0;  ///< how long a window should take
  std::uint32_t stretch_ = 1;   ///< longer windows where operations stay pending so long that times are missing
  std::vector<int> others_;
  std::vector<Slot> slots_;
  /// Places in slots_ of each operation and class of element types, by size.
  std::array<std::array<std::vector<std::uint32_t>, route::dtype_class_count>, op_count> by_call_;
  std::unique_ptr<route::OnlineDecider> decider_;
  std::deque<Window> windows_;            ///< from the first whose result was not taken to the current one
  std::shared_ptr<AgreedValues> agreed_;  ///< what decides the next window
  std::weak_ptr<ValueQuery> query_;       ///< it is asked for; operations that wait share it
  std::uint64_t waiting_ = 0;             ///< operations that wait for their route
  std::vector<OnlineDecision> decisions_;
};

}  // namespace medley::core
