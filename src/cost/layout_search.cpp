#include "cost/layout_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <medley/error.hpp>

#include "cost/on_all_cores.hpp"
#include "cost/search_axes.hpp"
#include "model/read_layout.hpp"
#include "plan/export.hpp"

namespace medley::cost {
namespace {

/// Tokens of a step where the request names no batch, as large models are trained with.
constexpr double usual_batch_tokens = 4 << 20;

/// A point of the grid. Impossible ones have neither.
struct Tried {
  std::optional<FoundLayout> fits;
  std::optional<std::pair<Layout, FullestGpu>> too_large;
};

void require(bool given, const char* sentence) {
  if (!given) throw Error(ErrorKind::invalid, sentence);
}

Layout base_layout(const LayoutSearchRequest& request, const Model& model) {
  require(!request.machine.empty(), "--machine is required: layouts are compared by their time");
  require(request.gpus > 0, "--gpus is required: how many the job has");
  Layout layout = layout_of(request);
  if (layout.ranks != 0 && layout.ranks != request.gpus)
    throw Error(ErrorKind::invalid,
                fmt::format("--gpus {} contradicts world {} of --layout", request.gpus, layout.ranks));
  layout.ranks = request.gpus;
  if (layout.global_batch == 0) {  // layouts are compared at the same batch
    const double samples = usual_batch_tokens / static_cast<double>(layout.seq > 0 ? layout.seq : model.seq);
    const double each = std::max(1.0, std::round(samples / static_cast<double>(request.gpus)));
    layout.global_batch = request.gpus * static_cast<Count>(each);
  }
  return layout;
}

std::vector<SweepAxis> all_axes(const LayoutSearchRequest& request, const PlanSetting& setting, const Model& model,
                                const Layout& base) {
  grid_size(request.axes);  // rejects axes without values
  std::vector<SweepAxis> axes = search_axes(request, setting, model, base);
  for (const SweepAxis& asked : request.axes) {
    Layout layout = base;
    if (!model::set_layout_key(layout, asked.key, asked.values.at(0), "--sweep"))
      throw Error(ErrorKind::invalid, fmt::format("--sweep key '{}' is not one of a layout", asked.key));
    std::erase_if(axes, [&](const SweepAxis& axis) { return axis.key == asked.key; });
    axes.push_back(asked);
  }
  return axes;
}

/// Memory is looked at first: most layouts of a large model do not fit, and time costs a simulation.
Tried try_layout(const PlanSetting& setting, const Model& model, Layout layout, const std::vector<SweepAxis>& axes,
                 const std::vector<std::string>& values) {
  try {
    for (std::size_t a = 0; a < axes.size(); ++a) model::set_layout_key(layout, axes[a].key, values[a], "--sweep");
    check(layout, model);
    const FullestGpu fullest = fullest_gpu(model, layout, setting.framework);
    if (static_cast<double>(fullest.memory.total()) > usable_memory(gpu_memory_bytes(setting.machine->memory_gb)))
      return {.fits = {}, .too_large = std::pair(layout, fullest)};
    PlanResult plan = plan_step(setting, model, layout, std::nullopt);
    return {.fits = FoundLayout{plan.layout, plan.fullest, std::move(*plan.time)}, .too_large = {}};
  } catch (const Error&) {
    return {};  // sizes that do not divide, or that the framework cannot run
  }
}

void collect(std::vector<Tried> tried, std::size_t most, double gpu_bytes, LayoutSearchResult& result) {
  const std::pair<Layout, FullestGpu>* nearest = nullptr;
  result.tried = tried.size();
  for (Tried& t : tried) {
    if (t.fits) result.layouts.push_back(std::move(*t.fits));
    else if (!t.too_large) ++result.impossible;
    else {
      ++result.too_large;
      if (!nearest || t.too_large->second.memory.total() < nearest->second.memory.total()) nearest = &*t.too_large;
    }
  }
  const auto slowness = [](const FoundLayout& found) { return found.time.cost.step_us; };
  std::ranges::stable_sort(result.layouts, {}, slowness);
  if (result.layouts.empty() && nearest)
    result.nearest =
        fmt::format("{} needs {}", plan::layout_text(nearest->first), fit_sentence(nearest->second.memory, gpu_bytes));
  if (result.layouts.size() > most)
    result.layouts.erase(result.layouts.begin() + static_cast<std::ptrdiff_t>(most), result.layouts.end());
}

}  // namespace

LayoutSearchResult search_layouts(const LayoutSearchRequest& request) {
  const Model model = model_of(request);
  const Layout base = base_layout(request, model);
  const PlanSetting setting(request);
  LayoutSearchResult result{.model = model,
                            .framework = setting.framework,
                            .machine = setting.machine->name,
                            .gpus = request.gpus,
                            .global_batch = base.global_batch,
                            .assumed_batch = layout_of(request).global_batch == 0,
                            .fixed = request.layout,
                            .axes = all_axes(request, setting, model, base),
                            .layouts = {}};
  std::vector<Tried> tried(grid_size(result.axes));
  on_all_cores(
      tried.size(),
      [&](std::size_t i) { tried[i] = try_layout(setting, model, base, result.axes, grid_point(result.axes, i)); },
      request.progress);
  collect(std::move(tried), request.most, gpu_memory_bytes(setting.machine->memory_gb), result);
  return result;
}

nlohmann::ordered_json to_json(const LayoutSearchResult& result) {
  auto varied = nlohmann::ordered_json::object(), layouts = nlohmann::ordered_json::array();
  for (const SweepAxis& axis : result.axes) varied[axis.key] = axis.values;
  for (const FoundLayout& found : result.layouts) {
    nlohmann::ordered_json json = {{"layout", plan::layout_text(found.layout)},
                                   {"sizes", plan::to_json(found.layout)},
                                   {"memory", to_json(found.fullest.memory)}};
    json.update(to_json(found.time, found.fullest));
    layouts.push_back(std::move(json));
  }
  return {{"model", plan::to_json(result.model)},
          {"framework", plan::name(result.framework)},
          {"machine", result.machine},
          {"gpus", result.gpus},
          {"global_batch", result.global_batch},
          {"assumed_batch", result.assumed_batch},
          {"fixed", result.fixed},
          {"varied", std::move(varied)},
          {"tried", result.tried},
          {"impossible", result.impossible},
          {"too_large", result.too_large},
          {"layouts", std::move(layouts)}};
}

}  // namespace medley::cost
