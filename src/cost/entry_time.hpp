// The cost of one schedule entry: time on the GPU or the wire, host time to issue it, and the cause that the
// time is attributed to. Connects Schedule to kernel_time and link_time.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "cost/kernel_time.hpp"
#include "cost/link_time.hpp"
#include "plan/framework.hpp"

namespace medley::cost {

/// Why time passes on a rank. The breakdown of a step has one figure per cause.
enum class Cause : std::uint8_t {
  compute,    ///< forward and backward kernels
  recompute,  ///< forward kernels run again in the backward pass
  optimizer,
  launch,  ///< the GPU waits for the host to issue kernels
  tp,
  cp,
  ep,
  dp,
  pp,      ///< transfers of activations and gradients between stages, including tied embeddings
  sync,    ///< scalars over the model or the world: norms, overflow flags, losses
  bubble,  ///< waiting for other pipeline stages
  other,   ///< per step, outside the schedule: data loading, logging
};
inline constexpr std::size_t cause_count = 12;
std::string_view name(Cause cause) noexcept;

/// Microseconds by cause.
using Spent = std::array<double, cause_count>;
inline double& at(Spent& spent, Cause cause) { return spent[static_cast<std::size_t>(cause)]; }
inline double at(const Spent& spent, Cause cause) { return spent[static_cast<std::size_t>(cause)]; }

struct EntryCost {
  double us = 0;       ///< GPU or wire
  double host_us = 0;  ///< to issue it
  double tail_us = 0;  ///< asynchronous: the part of `us` that starts only at its wait
  Cause cause = Cause::compute;
  std::uint8_t link = 0;       ///< operations of one group queue behind each other; an index from group_index()
  bool across_stages = false;  ///< a collective whose members are in several pipeline stages
};

/// An asynchronous operation under way.
struct UnderWay {
  double end = 0, tail_us = 0;
  Cause cause = Cause::compute;
  void join(double other_end, const EntryCost& cost) {
    end = std::max(end, other_end);
    tail_us = cost.tail_us;
    cause = cost.cause;
  }
  /// When a wait that starts at `now` returns.
  double done(double now) const { return std::max(end, now + tail_us); }
};

/// A small number for each group name.
std::uint8_t group_index(std::string_view group) noexcept;
inline constexpr std::size_t group_count = 14;

/// The costs of a schedule's entries, in order. `layout` is as the framework runs it.
std::vector<EntryCost> entry_costs(const Schedule& schedule, const Layout& layout, Framework framework, Count rank,
                                   const Machine& machine, KernelTime& kernels);

}  // namespace medley::cost
