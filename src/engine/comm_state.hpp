// What a Comm stands for: its ranks, its lanes, its counters, and whether it still works.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <medley/backend.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/filled_lane.hpp"
#include "engine/message_order.hpp"
#include "engine/routing.hpp"
#include "engine/size_agreement.hpp"
#include "engine/status_board.hpp"

namespace medley::core {

class CommState;
class ContextState;
class Engine;
class Operation;

/// One backend on one comm, with what the engine keeps about it. A host backend has a second one for CUDA memory, which
/// stages: its messages and collectives are then apart from those on host memory.
struct LaneState {
  LaneState() = default;
  LaneState(const LaneState&) = delete;
  LaneState& operator=(const LaneState&) = delete;

  Backend* backend = nullptr;
  CommState* comm = nullptr;
  std::string name;                       ///< the backend's
  std::uint8_t note = 0;                  ///< the backend's in records
  int place = 0;                          ///< among the comm's lanes
  std::unique_ptr<Lane> lane;
  /// The lane itself, or the one it stages for: all but start() and abort() are the same there, and called without a table.
  algorithms::FilledLane* filled = nullptr;
  SizeExchange size_exchange{};                    ///< of sizes; goes before the lane does
  bool host = true, cuda = false;         ///< the memory it moves
  bool staged = false;
  bool in_streams = false;
  bool connects_lazily = false;           ///< Trait::connects_lazily
  bool default_for_host = false, default_for_cuda = false;   ///< takes what neither a rule nor the table decides
  bool broken = false;                    ///< its progress() threw: it is not called again
  std::deque<Operation*> collectives{};   ///< in lane order, not complete; the scheduler's
  MessageOrder messages{};                ///< those that wait to be started; the scheduler's
  int active = 0;                         ///< started and not complete
  EventCount* event_count = nullptr;
  Route named{this, {}, RouteReason::named};

  bool has(Memory memory) const { return memory == Memory::cuda ? cuda : host; }
  /// Whether something that nobody waits for here still needs to be moved.
  bool has_undelivered() const { return !broken && (filled->undelivered() || !size_exchange.empty()); }
  /// A barrier moves no memory, so every lane has it; only some can put it behind a stream.
  bool moves(Op op, Memory memory) const { return has(memory) || (op == Op::barrier && memory == Memory::host); }
};

/// Lanes, counters and failure are guarded by the engine's lock.
class CommState {
 public:
  std::string name;
  int rank = 0;
  int size = 1;
  int device = 0;                                  ///< the CUDA device of this rank
  std::string why_no_cuda;                         ///< why nothing is staged here; empty if it is
  std::vector<int> world_ranks;
  std::chrono::nanoseconds deadline{};
  std::shared_ptr<Engine> engine;
  std::weak_ptr<ContextState> context;
  std::vector<std::unique_ptr<LaneState>> lanes;   ///< in order of preference
  /// Backends of the context that cannot serve these ranks, and why.
  std::vector<std::pair<std::string, std::string>> refusals;
  Routing routing;
  std::unique_ptr<SizeAgreement> sizes;            ///< of uneven operations, where they decide routes
  /// Collectives that have no place on a lane yet, in order of issue: some with an open route, and those behind them. A
  /// reference each.
  std::deque<Operation*> awaiting_lane_order;
  std::uint32_t note = 0;                          ///< its number in records
  std::shared_ptr<CommStatus> status;              ///< what other ranks may ask about it; none while it is being made
  std::uint64_t collectives = 0;                   ///< issued so far
  std::uint64_t messages = 0;

  /// Of the next collective or message: its number.
  std::uint64_t count(bool collective) {
    const std::uint64_t number = ++(collective ? collectives : messages);
    // relaxed: counts for the status board, which shows each for itself
    if (status) (collective ? status->collectives : status->messages).store(number, std::memory_order_relaxed);
    return number;
  }

  std::uint64_t children = 0;                      ///< comms made from this one
  bool checked = false;                            ///< collectives are compared among the ranks before they start
  Deadline lost_since{};                           ///< since when a member is known to be gone
  std::optional<Error> failure;                    ///< why nothing works any more
  bool aborting = false;                           ///< its lanes have yet to finish their abort
};

}  // namespace medley::core
