// Routes of one comm's operations: the rules and table rows that apply to it, compiled into a short list per operation
// when the comm is made. A look-up depends only on values that are equal on all its ranks.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <medley/backend.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <medley/rules.hpp>

#include "record/record.hpp"
#include "route/table.hpp"

namespace medley::core {

struct LaneState;

struct Route {
  LaneState* lane = nullptr;
  std::string algorithm{};  ///< empty: the lane chooses
  RouteReason reason = RouteReason::fallback;
  bool operator==(const Route&) const = default;
};

/// Whether a call names this backend. Names are a few characters long: a call takes longer than the comparison.
[[gnu::always_inline]] inline bool same_name(std::string_view name, std::string_view wanted) noexcept {
  if (name.size() != wanted.size()) return false;
  switch (wanted.size()) {  // of known length it is two comparisons
    case 3: return std::memcmp(name.data(), wanted.data(), 3) == 0;
    case 4: return std::memcmp(name.data(), wanted.data(), 4) == 0;
    default: return name == wanted;
  }
}

/// Bytes of the whole tensor, as tables and rules count them; equal on all ranks. For v-collectives (v_collectives.hpp)
/// it is what this rank knows.
MEDLEY_API std::int64_t tensor_bytes(const Call& call, int ranks) noexcept;

/// The inputs to a comm's routes, besides its lanes.
struct RoutingSources {
  const Rules& of_comm;  ///< takes precedence
  const Rules& of_context;
  const route::Table* table = nullptr;  ///< applies where no rule matches
  route::Shape shape{};
  bool exact = false;  ///< both ends of a message know its size, so it may decide the route
};

/// Sizes that the table measured together, with the routes that a comm may take there.
struct MeasuredRange {
  struct Candidate {
    Route route;
    std::int64_t expected_ns = 0;
    bool tied = false;  ///< the table cannot tell whether it is clearly faster than its choice
  };
  std::int64_t from = 0, to = INT64_MAX;
  std::vector<Candidate> candidates{};  ///< the table's choice first
};

class MEDLEY_API Routing {
 public:
  Routing() = default;
  /// Rules and rows for backends that the comm lacks are skipped, on all its ranks alike. What neither covers goes to
  /// the default backend for the memory, or to the first lane that handles it.
  Routing(const RoutingSources& sources, const std::vector<std::unique_ptr<LaneState>>& lanes);

  /// Null when no lane handles this kind of memory. A v-collective uses its nominal size.
  const Route* find(const Call& call, int ranks) const noexcept {
    const Steps& steps = of(call);
    if (steps.size() == 1) return &steps.front().route;  // independent of the size
    return at(steps, equal_bytes(call, ranks));
  }
  /// The route of messages in host memory, where it does not depend on their size; else null.
  const Route* of_messages(Op op, DType dtype) const noexcept {
    const Steps& steps = of(op, Memory::host, route::class_of(op, dtype));
    return steps.size() == 1 ? &steps.front().route : nullptr;
  }
  /// The same for a v-collective of the agreed size.
  const Route* find_by_size(const Call& call, std::int64_t bytes) const noexcept { return at(of(call), bytes); }
  /// Whether the size of a v-collective decides its route. Never where a route is stream-ordered: such an operation
  /// launches at issue, so that CUDA graphs can capture it and all comms keep one launch order, and cannot wait for an
  /// agreement.
  bool by_size(Op op, Memory memory) const noexcept;
  /// Whether messages in this memory go to several lanes, which only comms with exact sizes allow.
  bool splits_messages(Memory memory) const noexcept;
  /// Calls `see` with every route that the call may take.
  template <typename See>
  void each_route(const Call& call, const See& see) const {
    for (const Step& step : of(call)) see(step.route);
  }
  /// Where the table decides for host memory: its choice at each measured size, and up to seven other routes, among
  /// them one of each backend of the comm. Compressed ones are left out.
  std::vector<MeasuredRange> measured_ranges(Op op, route::DTypeClass dtype, const RoutingSources& sources,
                                             const std::vector<std::unique_ptr<LaneState>>& lanes) const;
  /// The shape whose rows are used for this comm, where the table has none for its own shape.
  const std::optional<route::Shape>& fallback_shape() const noexcept { return fallback_shape_; }

 private:
  struct Step {
    std::int64_t from, to;
    Route route;
  };
  using Steps = std::vector<Step>;
  const Steps& of(Op op, Memory memory, route::DTypeClass dtype) const noexcept {
    return steps_[static_cast<std::size_t>(memory)][static_cast<std::size_t>(op)][static_cast<std::size_t>(dtype)];
  }
  const Steps& of(const Call& call) const noexcept {
    return of(call.op, call.memory, route::class_of(call.op, call.dtype));
  }
  static const Route* at(const Steps& steps, std::int64_t bytes) noexcept {
    for (const Step& step : steps) {
      if (bytes >= step.from && bytes <= step.to) return &step.route;
    }
    return nullptr;
  }
  static std::int64_t equal_bytes(const Call& call, int ranks) noexcept;
  Steps steps_for(Op op, Memory memory, route::DTypeClass dtype, const RoutingSources& sources,
                  const std::vector<std::unique_ptr<LaneState>>& lanes);
  /// `allowing`: the rule that allows codecs; only its sizes, then. Returns whether the table has rows.
  bool add_rows(Steps& steps, Op op, Memory memory, route::DTypeClass dtype, const RoutingSources& sources,
                const std::vector<std::unique_ptr<LaneState>>& lanes, const Rules::Rule* allowing);

  std::array<std::array<std::array<Steps, route::dtype_class_count>, op_count>, 2> steps_;
  std::optional<route::Shape> fallback_shape_;
};

}  // namespace medley::core
