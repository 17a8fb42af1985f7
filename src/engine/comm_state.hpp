// The state behind a Comm: its ranks, lanes and counters, and whether it has failed.
#pragma once

#include <bitset>
#include <chrono>
#include <cstdint>
#include <deque>
#include <medley/backend.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/filled_lane.hpp"
#include "algorithms/host_lane.hpp"
#include "engine/auto_fuse.hpp"
#include "engine/message_order.hpp"
#include "engine/message_sizes.hpp"
#include "engine/online_routes.hpp"
#include "engine/routing.hpp"
#include "engine/size_agreement.hpp"
#include "engine/status_board.hpp"
#include "fuse/collector.hpp"

namespace medley::core {

class CommState;
class ContextState;
class Engine;
class Operation;

/// One backend on one comm, with the engine's state for it. A host backend has a second lane for CUDA memory, which
/// stages; its messages and collectives match separately from those on host memory.
struct LaneState {
  LaneState() = default;
  LaneState(const LaneState&) = delete;
  LaneState& operator=(const LaneState&) = delete;

  Backend* backend = nullptr;
  CommState* comm = nullptr;
  std::string name;       ///< the backend's name
  std::uint8_t note = 0;  ///< the backend's number in records
  int place = 0;          ///< index among the comm's lanes
  std::unique_ptr<Lane> lane;
  /// The lane itself, or the one it stages for. All but start() and abort() behave the same there and are called
  /// without a vtable.
  algorithms::FilledLane* filled = nullptr;
  /// What decides routes and is not equal on all ranks; destroyed before the lane
  ValueExchange value_exchange{};
  bool host = true, cuda = false;  ///< the memory kinds it handles
  bool staged = false;
  bool in_streams = false;
  /// On CUDA memory, not stream-ordered: the host launches one phase of a collective after the other
  bool launches_in_phases = false;
  bool connects_lazily = false;  ///< Trait::connects_lazily
  bool inside_host = false;      ///< Trait::inside_host: its small messages are copies in memory
  bool slow_reductions = false;  ///< Trait::slow_reductions
  bool sends_now = false;        ///< Trait::sends_now
  bool default_for_host = false, default_for_cuda = false;  ///< the default where neither a rule nor the table decides
  std::bitset<op_count> in_phases{};  ///< of a pair: what it does inside and between hosts in turn
  /// If set, it carries only messages between the ranks of this host (part of `lane`)
  const algorithms::HostLane* host_lane = nullptr;
  bool broken = false;                   ///< its progress() threw: it is not called again
  std::deque<Operation*> collectives{};  ///< in lane order, not complete; owned by the scheduler
  MessageOrder messages{};               ///< messages that wait to be started; owned by the scheduler
  int active = 0;                        ///< started and not complete
  EventCount* event_count = nullptr;
  Route named{this, {}, RouteReason::named};

  bool has(Memory memory) const { return memory == Memory::cuda ? cuda : host; }
  /// Whether the lane needs progress for something that no pending operation here waits for.
  bool has_undelivered() const { return !broken && (filled->undelivered() || !value_exchange.empty()); }
  /// Whether its collectives have a place in the device's order of launches.
  bool ordered_on_device() const { return in_streams || launches_in_phases; }
  /// A barrier touches no memory, so every lane has it; only some can order it behind a stream.
  bool moves(Op op, Memory memory) const {
    return has(memory) || (op == Op::barrier && memory == Memory::host && !host_lane);
  }
};

/// Lanes, counters and failure are guarded by the engine's lock.
class CommState {
 public:
  std::string name;
  int rank = 0;
  int size = 1;
  int device = 0;           ///< the CUDA device of this rank
  std::string why_no_cuda;  ///< why CUDA memory is not staged here; empty if it is
  std::vector<int> world_ranks;
  std::chrono::nanoseconds deadline{};
  std::shared_ptr<Engine> engine;
  std::weak_ptr<ContextState> context;
  std::vector<std::unique_ptr<LaneState>> lanes;  ///< in order of preference
  /// Backends that are not available here or cannot serve these ranks, and why.
  std::vector<std::pair<std::string, std::string>> refusals;
  Routing routing;
  LaneState* last_named = nullptr;  ///< the lane of the last message whose call named a backend
  bool short_sends = true;          ///< whether to try Engine::send_now(): the last message's lane has it
  bool exact = false;               ///< every receive has the size of its message (CommOptions::exact)
  /// With exact sizes on several hosts: the lane of messages inside this host
  LaneState* intra_host_lane = nullptr;
  std::shared_ptr<MessageSizes> message_sizes;  ///< with exact sizes, where messages take several lanes
  std::unique_ptr<SizeAgreement> sizes;         ///< of v-collectives, where sizes decide routes
  std::unique_ptr<OnlineRoutes> online;         ///< where routes are measured in the running job
  bool agrees_on_routes = false;                ///< it has one of the two
  /// Collectives without a lane order yet, in order of issue: those with an open route, and those behind them. A
  /// reference each.
  std::deque<Operation*> awaiting_lane_order;
  std::uint32_t note = 0;              ///< its number in records
  std::shared_ptr<CommStatus> status;  ///< what other ranks may query; null while the comm is being made
  std::uint64_t collectives = 0;       ///< issued so far
  std::uint64_t messages = 0;

  /// The sequence number of the next collective or message.
  std::uint64_t count(bool collective) {
    const std::uint64_t number = ++(collective ? collectives : messages);
    // relaxed: counters for the status board, each read on its own
    if (status) (collective ? status->collectives : status->messages).store(number, std::memory_order_relaxed);
    return number;
  }

  std::unique_ptr<fuse::Collector> collector;  ///< while a fuse scope is open
  std::unique_ptr<AutoFuse> auto_fuse;         ///< where async collectives are fused without being asked to
  fuse::Limits fuse_limits;                    ///< the same on all ranks
  /// Whether tensors of this size share messages with others; the same on all ranks.
  bool fuses(const Call& call, std::string_view backend) const {
    return fuse::larger_side(call, rank, size) <= fuse_limits.of(call.memory, backend);
  }

  std::uint64_t children = 0;    ///< comms made from this one
  bool checked = false;          ///< the consistency checker compares collectives before they start
  Deadline last_check{};         ///< when its lanes were last asked for lost ranks and aborts
  Deadline lost_since{};         ///< since when a member is known to be lost
  std::optional<Error> failure;  ///< why the comm no longer works
  bool aborting = false;         ///< its lanes have not finished their abort
};

}  // namespace medley::core
