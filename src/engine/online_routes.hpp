// Routes that change in a running job (MEDLEY_ONLINE=1): counts the collectives of a comm in windows, times a few of them, exchanges
// the times with the other ranks, and takes its routes from route::OnlineDecider, which decides alike on all of them
// (docs/guarantees.md, "Routes that change in a running job"). Owned by the comm, under the engine's lock.
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
struct OnlineNews {
  route::RouteDecision decision;
  Op op{};
  route::DTypeClass dtype{};
  std::int64_t from_bytes = 0, to_bytes = 0;
  std::uint64_t sequence = 0;     ///< the comm's collective from which on it applies
  std::string from{}, to{};       ///< routes, as rules spell them
  std::string reason{};
};

/// One sentence: why the route was changed or kept.
std::string reason_of(const OnlineNews& news);

class MEDLEY_API OnlineRoutes {
 public:
  using Mode = route::OnlineDecider::Mode;
  /// Null where there is nothing to choose: no table, no second route, one rank, or no lane to exchange times.
  static std::unique_ptr<OnlineRoutes> make(const CommState& comm, const RoutingSources& sources, Mode mode);

  /// Whether the route of this call, which names no backend and whose table route is `admitted`, is decided here.
  bool decides(const Call& call, const Route& admitted) const noexcept;
  struct Decision {
    const Route* route = nullptr;
    OpenRoute open{};             ///< if set, route_of() tells the route once it is answered
  };
  /// Counts an operation that is being issued as the comm's collective of this number; called in the same order on all ranks.
  Decision next(const Call& call, std::uint64_t sequence, OnlineTicket& ticket);
  /// The route of an operation that waited for its window's decision, which has been answered.
  const Route& route_of(OnlineTicket& ticket);
  /// A timed operation took this long.
  void note(const OnlineTicket& ticket, std::uint64_t ticks_taken);
  /// The lane that carries the exchange.
  LaneState& lane() const { return *lane_; }
  /// Decisions since the last call.
  std::vector<OnlineNews> take_news() { return std::exchange(news_, {}); }

 private:
  struct Candidate {
    Route in_use, tried;          ///< the same with different reasons
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
    std::uint64_t begun = 0;      ///< in ticks
    std::int64_t elapsed_ns = 0, expected_ns = 0;
    std::uint32_t operations = 0;
    std::uint32_t unresolved = 0;                ///< operations that wait for their route
    std::vector<std::uint32_t> counts{};         ///< per slot
    route::WindowPlan plan{};
    bool planned = false;
    std::vector<std::int64_t> times_ns{};        ///< per timed operation, of this rank; negative: not known yet
    std::vector<std::int64_t> told{};            ///< what this rank told the others
    std::shared_ptr<AgreedValues> agreed{};      ///< about the window `lag` windows earlier, which decides this one
    std::weak_ptr<ValueQuery> query{};           ///< what waiting operations share
  };
  void add_slots(Op op, route::DTypeClass dtype, const Routing& routing, const RoutingSources& sources,
                 const std::vector<std::unique_ptr<LaneState>>& lanes, std::vector<route::OnlineSlot>& slots);
  std::uint32_t slot_of(const Call& call) const noexcept;
  Window& window(std::uint64_t number) { return windows_[static_cast<std::size_t>(number - windows_.front().number)]; }
  void begin_window(std::uint64_t sequence);
  bool ends(const Window& window) const;
  void tell(Window& about);
  bool try_plan(Window& window);
  void plan(Window& window);
  const Route& planned_route(OnlineTicket& ticket);
  void report(const route::RouteDecision& decision, const Window& from_window);

  LaneState* lane_ = nullptr;
  Mode mode_{};
  int ranks_ = 0;
  std::int64_t window_ns_ = 0;    ///< expected time of a window's operations
  std::vector<int> others_;
  std::vector<Slot> slots_;
  /// Places in slots_ of each operation and class of element types, by size.
  std::array<std::array<std::vector<std::uint32_t>, route::dtype_class_count>, op_count> by_call_;
  std::unique_ptr<route::OnlineDecider> decider_;
  std::deque<Window> windows_;    ///< from the first whose result was not taken, or with operations that wait for their route, to the current one
  std::vector<OnlineNews> news_;
};

}  // namespace medley::core
