// The built-in mixes as steps: buffers, operations and checks of a MoE, a DLRM and a dense model. Used by `medley bench
// --mix` and `medley tune --for`.
#pragma once

#include <functional>
#include <medley/medley.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tune/block.hpp"
#include "tune/step.hpp"

namespace medley::tune {

/// Whether it names a built-in mix.
bool is_mix(std::string_view name);
/// What a mix sends in a world whose ranks are on these hosts, in order.
std::vector<StepOperation> operations_of_mix(std::string_view mix, const std::vector<int>& hosts);

class MixStep final : public Step {
 public:
  /// One of mix_names on this comm, whose ranks are on these hosts, with buffers small enough that a step takes
  /// milliseconds on two cores. Collective.
  MixStep(Comm comm, std::string mix, Memory memory, const std::vector<int>& hosts);

  const std::vector<StepOperation>& operations() const override { return operations_; }
  void run(const StepRoutes& routes) override;
  void check(const StepRoutes& routes, std::string_view name) override;

  /// The same over one backend for everything; empty: the runtime's choice.
  void run(const Choice& backend);
  void check(const Choice& backend);

 private:
  using RouteFor = std::function<const Choice&(Op op, std::int64_t bytes)>;
  RouteFor by(const StepRoutes& routes) const;
  void run_by(const RouteFor& route);
  void check_by(const RouteFor& route, std::string_view name);
  Block floats(std::size_t bytes) const;
  void expect_parts(Block& block, const std::vector<double>& values, std::string_view name) const;
  std::vector<Work> sum_buckets(std::size_t count, const RouteFor& route);
  std::vector<Work> moe(const RouteFor& route);
  std::vector<Work> dlrm(const RouteFor& route);
  std::vector<Work> dense(const RouteFor& route);

  Comm comm_;
  std::string mix_;
  Memory memory_;
  route::Shape shape_;
  Block tokens_, routed_, back_, looked_up_;
  std::vector<Block> buckets_;
  std::vector<std::int64_t> sent_, received_;
  std::vector<StepOperation> operations_;
};

}  // namespace medley::tune
