// What a search for layouts varies, and the values that it tries. Used by layout_search.cpp.
#pragma once

#include "cost/plan_step.hpp"
#include "cost/sweep_axis.hpp"

namespace medley::cost {

/// tp inside a host, pp, virtual stages, ep, micro-batch, the ZeRO stages of the framework, sequence parallelism and
/// recomputation. What the request sets is not varied; `base` is its layout, with the number of ranks.
std::vector<SweepAxis> search_axes(const PlanRequest& request, const PlanSetting& setting, const Model& model,
                                   const Layout& base);

}  // namespace medley::cost
