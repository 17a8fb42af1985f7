// From Model and Layout to the Schedule of one rank, as each framework really issues it.
// One source file per framework; used by `medley plan`, the cost model and reconcile.
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

/// The layout with what the framework always does: Megatron and NeoX fuse chains of element-wise kernels and
/// train GPTs with dropout; the others run PyTorch's kernels one by one unless compiled.
Layout as_run_by(const Model& model, const Layout& layout, Framework framework);

/// One line on what a plan takes for granted where the layout did not say: attention, precision, kernels,
/// overlap.
std::string assumptions(const Model& model, const Layout& layout, Framework framework);

/// The schedule of `rank` in one step. `layout` must have passed check(layout, model); throws Error(invalid)
/// where the framework cannot run it (naming the axis), such as tensor parallelism under ddp.
Schedule make_schedule(const Model& model, const Layout& layout, Framework framework, Count rank);

/// The entries of one block of the model on one tensor rank, forward, recomputed and backward, with the
/// communication of `framework`'s layers. `layout` is as the framework runs it; `kind` counts for layers
/// only.
enum class BlockKind : std::uint8_t { layer, embedding, head };
std::vector<Entry> block_entries(const Model& model, const Layout& layout, Framework framework,
                                 BlockKind block, LayerKind kind = {});

/// The rank with the most wire bytes; every pipeline stage is tried, the first rank of the busiest one is
/// taken.
Count busiest_rank(const Model& model, const Layout& layout, Framework framework);

}  // namespace medley::plan
