// From Model and Layout to the Schedule of one rank, as each framework really issues it.
// One source file per framework; used by `medley plan`, the cost model and reconcile.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "plan/schedule.hpp"

namespace medley::plan {

enum class Framework : std::uint8_t { textbook, megatron, deepspeed, neox, ddp, fsdp2 };
inline constexpr int framework_count = 6;
std::string_view name(Framework framework) noexcept;
std::optional<Framework> parse_framework(std::string_view text) noexcept;

/// The layout with what the framework always does: PyTorch's own attention (ddp, fsdp2) is fused.
Layout as_run_by(const Layout& layout, Framework framework);

/// The schedule of `rank` in one step. `layout` must have passed check(layout, model); throws Error(invalid)
/// where the framework cannot run it (naming the axis), such as tensor parallelism under ddp.
Schedule make_schedule(const Model& model, const Layout& layout, Framework framework, Count rank);

/// The rank with the most wire bytes; every pipeline stage is tried, the first rank of the busiest one is
/// taken.
Count busiest_rank(const Model& model, const Layout& layout, Framework framework);

}  // namespace medley::plan
