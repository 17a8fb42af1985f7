// From Model and Layout to the Schedule of one rank, exactly as each framework issues it. One source file per
// framework; used by `medley plan`, the cost model and reconcile.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/schedule.hpp"

namespace medley::plan {

enum class Framework : std::uint8_t { textbook, megatron, deepspeed, neox, ddp, fsdp2, fsdp1, nanotron };
inline constexpr int framework_count = 8;
std::string_view name(Framework framework) noexcept;
std::optional<Framework> parse_framework(std::string_view text) noexcept;

/// The layout with the framework's fixed behaviour: Megatron and NeoX fuse chains of element-wise kernels and
/// train GPTs with dropout; the others run PyTorch's kernels one by one unless compiled.
Layout as_run_by(const Model& model, const Layout& layout, Framework framework);

/// What the framework shards, as a ZeRO stage: FSDP is stage 3, or 2 where parameters stay whole until the end of the
/// backward pass.
int zero_stage(const Layout& layout, Framework framework) noexcept;

/// One line on the plan's assumptions where the layout does not say: attention, precision, kernels, overlap.
std::string assumptions(const Model& model, const Layout& layout, Framework framework);

/// The schedule of `rank` in one step. `layout` must have passed check(layout, model); throws Error(invalid)
/// naming the axis if the framework cannot run it, such as tensor parallelism under ddp.
Schedule make_schedule(const Model& model, const Layout& layout, Framework framework, Count rank);

/// The entries of one block of the model on one tensor rank, forward, recomputed and backward, with the
/// communication of `framework`'s layers. `layout` is as the framework runs it; `kind` applies to layers
/// only.
enum class BlockKind : std::uint8_t { layer, embedding, head };
std::vector<Entry> block_entries(const Model& model, const Layout& layout, Framework framework, BlockKind block,
                                 LayerKind kind = {});

/// The rank with the most wire bytes: the first rank of the busiest pipeline stage.
Count busiest_rank(const Model& model, const Layout& layout, Framework framework);

}  // namespace medley::plan
