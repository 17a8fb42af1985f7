// Where the operations of one comm go: the rules and the table rows that apply to it, made into a short list per
// operation when the comm is made. A look-up depends only on values that are equal on all its ranks.
#pragma once

#include <array>
#include <cstdint>
#include <medley/backend.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <medley/rules.hpp>

#include "core/record.hpp"
#include "route/table.hpp"

namespace medley::core {

struct LaneState;

struct Route {
  LaneState* lane = nullptr;
  std::string algorithm{};   ///< empty: the lane's own choice
  RouteReason reason = RouteReason::fallback;
};

/// Where gatherv, scatterv and all_to_allv go: their sizes differ from rank to rank, so all of them count as this many
/// bytes, about what a layer of experts or an embedding exchanges.
inline constexpr std::int64_t nominal_v_bytes = std::int64_t{1} << 20;

/// Bytes of the whole tensor, as tables and rules count them; equal on all ranks.
MEDLEY_API std::int64_t tensor_bytes(const Call& call, int ranks) noexcept;

/// What decides the routes of a comm, besides its lanes.
struct RoutingSources {
  const Rules& of_comm;                  ///< counted first
  const Rules& of_context;
  const route::Table* table = nullptr;   ///< counted where no rule fits
  route::Shape shape{};
};

class MEDLEY_API Routing {
 public:
  Routing() = default;
  /// Rules and rows for backends the comm does not have are passed over, which all its ranks do alike. What neither
  /// covers goes to nccl for CUDA memory, to shm for host memory, or to the first lane that moves it.
  Routing(const RoutingSources& sources, const std::vector<std::unique_ptr<LaneState>>& lanes);

  /// Null when no lane moves this kind of memory.
  const Route* find(const Call& call, int ranks) const noexcept {
    const std::vector<Step>& steps = of(call.op, call.memory, route::class_of(call.op, call.dtype));
    if (steps.size() == 1) return &steps.front().route;   // not by size
    const std::int64_t bytes = tensor_bytes(call, ranks);
    for (const Step& step : steps) {
      if (bytes >= step.from && bytes <= step.to) return &step.route;
    }
    return nullptr;
  }
  /// The shape whose rows stand in for this comm's, where the table has none of its own.
  const std::optional<route::Shape>& stand_in() const noexcept { return stand_in_; }

 private:
  struct Step {
    std::int64_t from, to;
    Route route;
  };
  using Steps = std::vector<Step>;
  const Steps& of(Op op, Memory memory, route::DTypeClass dtype) const noexcept {
    return steps_[static_cast<std::size_t>(memory)][static_cast<std::size_t>(op)][static_cast<std::size_t>(dtype)];
  }
  Steps steps_for(Op op, Memory memory, route::DTypeClass dtype, const RoutingSources& sources,
                  const std::vector<std::unique_ptr<LaneState>>& lanes);
  void add_rows(Steps& steps, Op op, Memory memory, route::DTypeClass dtype, const RoutingSources& sources,
                const std::vector<std::unique_ptr<LaneState>>& lanes);

  std::array<std::array<std::array<Steps, route::dtype_class_count>, op_count>, 2> steps_;
  std::optional<route::Shape> stand_in_;
};

}  // namespace medley::core
