// A training step that can be run over any assignment of routes to its operations: a mix or a replayed schedule. What
// the step tuner compares assignments on.
#pragma once

#include <cstdint>
#include <medley/rules.hpp>
#include <medley/types.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "route/key.hpp"
#include "route/pair_name.hpp"

namespace medley::tune {

/// One kind of operation of a step.
struct StepOperation {
  Op op{};
  DType dtype = DType::f32;
  std::int64_t bytes = 0;  ///< of the whole tensor
  route::Shape shape{};    ///< of its comm
  std::int64_t count = 1;  ///< how many a step has, over all ranks
  bool in_blocks = true;   ///< the ranks of its comm, if on several hosts: what pairs need (core::in_equal_blocks)
};

/// Operations of one kind, element type and shape whose sizes are near one another: they take one route.
struct StepSlot {
  Op op{};
  route::DTypeClass dtype = route::DTypeClass::any;
  route::Shape shape{};
  std::int64_t from = 0, to = INT64_MAX;  ///< both inclusive
  std::int64_t bytes = 0;                 ///< of its largest operation
  bool in_blocks = true;                  ///< the comms of all its operations are
  bool holds(Op what, route::DTypeClass of, const route::Shape& on, std::int64_t size) const {
    return op == what && dtype == of && shape == on && size >= from && size <= to;
  }
};

/// The slots of a step. Sizes within a factor of four share one; messages and operations whose counts no rank knows in
/// full take one for all sizes, since their size cannot decide the route.
std::vector<StepSlot> slots_of(const std::vector<StepOperation>& operations);

/// Whether a comm placed like this can use a backend as it is named: a pair serves only some comms.
inline bool takes(const route::Shape& shape, bool in_blocks, std::string_view backend) {
  return route::backend_on(shape, backend, in_blocks) == backend;
}

/// A library's own algorithm for an operation or a slot, as their comms take it.
template <class Placed>
Choice own_route(const std::string& library, const Placed& one) {
  return {std::string(route::backend_on(one.shape, library, one.in_blocks)), "native"};
}

/// A route for every slot.
struct Assignment {
  std::string name;            ///< for people: "mpi", "table", "table, all_reduce of 512K over ucx/ring"
  std::vector<Choice> routes;  ///< by slot; an empty algorithm is the library's own
};
/// The key of an assignment: equal for equal routes, whatever their name.
std::string text_of(const std::vector<Choice>& routes);

/// The routes of one assignment, to look up an operation's.
class StepRoutes {
 public:
  StepRoutes(const std::vector<StepSlot>& slots, const std::vector<Choice>& routes) : slots_(slots), routes_(routes) {}
  const Choice& of(Op op, DType dtype, std::int64_t bytes, const route::Shape& shape) const;

 private:
  const std::vector<StepSlot>& slots_;
  const std::vector<Choice>& routes_;
};

class Step {
 public:
  virtual ~Step() = default;
  /// Every kind of operation that some rank has, in one order on all ranks.
  virtual const std::vector<StepOperation>& operations() const = 0;
  /// µs that the busiest rank computes; part of what makes it this step.
  virtual double computing_us() const { return 0; }
  /// Runs it once; returns when this rank has seen all its operations complete. Collective.
  virtual void run(const StepRoutes& routes) = 0;
  /// Runs it once and compares the results where that is possible; throws when one is wrong. `name`: of the assignment.
  virtual void check(const StepRoutes& routes, std::string_view name) {
    static_cast<void>(name);
    run(routes);
  }
};

/// A hash of what a step sends and computes: another one is another step.
std::string fingerprint(const std::vector<StepOperation>& operations, double computing_us);

}  // namespace medley::tune
