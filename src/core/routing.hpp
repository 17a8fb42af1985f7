// Where the operations of one comm go: the rules that apply to it, made into a short list per operation when the comm is
// made. A look-up depends only on values that are equal on all its ranks.
#pragma once

#include <array>
#include <cstdint>
#include <medley/backend.hpp>
#include <memory>
#include <string>
#include <vector>

#include <medley/rules.hpp>

#include "core/record.hpp"

namespace medley::core {

struct LaneState;

struct Route {
  LaneState* lane = nullptr;
  std::string algorithm{};   ///< empty: the lane's own choice
  RouteReason reason = RouteReason::fallback;
};

/// Bytes of the whole tensor, as tables and rules count them; of a v-form, what this rank gives or takes.
std::int64_t tensor_bytes(const Call& call, int ranks) noexcept;

class Routing {
 public:
  /// The first list of rules counts before the second; rules for backends the comm does not have are passed over, which
  /// all its ranks do alike. Throws Error(invalid) for an algorithm that an operation does not have.
  Routing() = default;
  Routing(const Rules& of_comm, const Rules& of_context, const std::vector<std::unique_ptr<LaneState>>& lanes);

  /// Null when no lane moves this kind of memory.
  const Route* find(const Call& call, int ranks) const noexcept {
    const std::vector<Step>& steps = steps_[static_cast<std::size_t>(call.memory)][static_cast<std::size_t>(call.op)];
    if (steps.size() == 1) return &steps.front().route;   // not by size
    const std::int64_t bytes = tensor_bytes(call, ranks);
    for (const Step& step : steps) {
      if (bytes >= step.from && bytes <= step.to) return &step.route;
    }
    return nullptr;
  }

 private:
  struct Step {
    std::int64_t from, to;
    Route route;
  };
  std::array<std::array<std::vector<Step>, op_count>, 2> steps_;
};

}  // namespace medley::core
