// What a Comm stands for: its ranks, its lanes, its counters, and whether it still works.
#pragma once

#include <chrono>
#include <cstdint>
#include <medley/backend.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/filled_lane.hpp"
#include "core/routing.hpp"

namespace medley::core {

class ContextState;
class Engine;
class Operation;

/// One backend on one comm, with what the engine keeps about it.
struct LaneState {
  LaneState() = default;
  LaneState(const LaneState&) = delete;
  LaneState& operator=(const LaneState&) = delete;

  Backend* backend = nullptr;
  std::string name;                       ///< the backend's
  std::uint8_t note = 0;                  ///< the backend's in records
  std::unique_ptr<algorithms::FilledLane> lane;
  Operation* last_collective = nullptr;   ///< the latest one that is not complete
  int active = 0;                         ///< started and not complete
  Waiter* waiter = nullptr;
  Route named{this, {}, RouteReason::named};
};

/// Lanes, counters and failure are guarded by the engine's lock.
class CommState {
 public:
  std::string name;
  int rank = 0;
  int size = 1;
  std::vector<int> world_ranks;
  std::chrono::nanoseconds deadline{};
  std::shared_ptr<Engine> engine;
  std::weak_ptr<ContextState> context;
  std::vector<std::unique_ptr<LaneState>> lanes;   ///< in order of preference
  /// Backends of the context that cannot serve these ranks, and why.
  std::vector<std::pair<std::string, std::string>> refusals;
  Routing routing;
  std::uint32_t note = 0;                          ///< its number in records
  std::uint64_t collectives = 0;                   ///< issued so far
  std::uint64_t messages = 0;
  std::uint64_t children = 0;                      ///< comms made from this one
  bool checked = false;                            ///< collectives are compared among the ranks before they start
  Deadline lost_since{};                           ///< since when a member is known to be gone
  std::optional<Error> failure;                    ///< why nothing works any more
};

}  // namespace medley::core
