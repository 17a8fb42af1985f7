#include "plan/zero.hpp"

#include <algorithm>

namespace medley::plan {
namespace {

/// A weight with its bias, the unit that ZeRO-3 fetches; the experts of a layer count as one (DeepSpeed's
/// leaf modules).
struct Module {
  Count layer = 0;
  Count padded = 0;  ///< elements sent
  Count elements = 0;
};

std::string_view module_name(const Tensor& t) { return std::string_view(t.name).substr(0, t.name.rfind('.')); }

std::vector<Module> modules_of(const std::vector<LocalTensor>& tensors, bool expert, const Flags& flags, Count group,
                               std::vector<Count>& persistent) {
  std::vector<Module> modules;
  std::string_view last;
  Count last_layer = -2;
  for (const LocalTensor& t : tensors) {
    if (t.expert() != expert) continue;
    const Count padded = round_up(t.elements, group);
    if (t.elements <= flags.persistence_elements) {
      persistent.push_back(padded);
      continue;
    }
    const std::string_view name = expert ? std::string_view("experts") : module_name(*t.tensor);
    if (!modules.empty() && name == last && t.layer == last_layer) {
      modules.back().padded += padded;
      modules.back().elements += t.elements;
    } else {
      modules.push_back({t.layer, padded, t.elements});
    }
    last = name;
    last_layer = t.layer;
  }
  return modules;
}

}  // namespace

std::vector<Flush> reduce_flushes(const std::vector<LocalTensor>& tensors, bool expert, Count bucket_elements) {
  std::vector<Flush> flushes;
  Count open = 0, layer = 0;
  for (auto t = tensors.rbegin(); t != tensors.rend(); ++t) {
    if (t->expert() != expert) continue;
    if (open > 0 && sum(open, t->elements) > bucket_elements) {
      flushes.push_back({open, t->layer, false});
      open = 0;
    }
    open = sum(open, t->elements, "gradient bucket");
    layer = t->layer;
  }
  if (open > 0) flushes.push_back({open, layer, true});
  return flushes;
}

// One pass: each module fetches itself unless its fetch is pending, then the next ones up to the prefetch
// size. Both passes release a module after use, so both gather all parameters.
FetchPlan plan_fetches(const std::vector<LocalTensor>& tensors, bool expert, const Flags& flags, Count group) {
  FetchPlan plan;
  const std::vector<Module> modules = modules_of(tensors, expert, flags, group, plan.persistent);
  const std::size_t n = modules.size();
  std::vector<std::size_t> order(2 * n);
  for (std::size_t i = 0; i < n; ++i) {
    order[i] = i;
    order[2 * n - 1 - i] = i;
  }
  // A module is kept when it is used again within the reuse distance: the last layers, between forward and
  // backward.
  std::vector<bool> kept(n, false);
  Count distance = 0;
  for (std::size_t i = n; i-- > 0 && flags.max_reuse_elements > 0;) {
    if (distance >= flags.max_reuse_elements) break;
    kept[i] = true;
    distance += 2 * modules[i].elements;
  }
  std::size_t queued = 0;  // the first use that no fetch covers yet
  Count live = 0;          // elements gathered and not yet used
  for (std::size_t step = 0; step < 2 * n; ++step) {
    Fetches& fetches = step < n ? plan.forward : plan.backward;
    const Count layer = modules[order[step]].layer;
    const auto take = [&](Count wanted, bool whole_step) {
      Count padded = 0, elements = 0;
      while (queued < 2 * n && (whole_step ? queued <= step : elements < wanted)) {
        const Module& module = modules[order[queued]];
        const bool there = queued >= n && kept[order[queued]];
        ++queued;
        if (there) continue;
        padded = sum(padded, module.padded);
        elements += module.elements;
      }
      if (padded > 0) fetches[layer].push_back(padded);
      live += elements;
    };
    if (queued <= step) take(0, true);
    live = std::max<Count>(0, live - modules[order[step]].elements);
    take(std::min(flags.prefetch_elements, flags.max_live_elements - live), false);
  }
  return plan;
}

std::vector<Count> owner_slices(Count from, Count to, Count total, Count group) {
  std::vector<Count> slices;
  const Count share = std::max<Count>(1, ceil_div(total, group));
  while (from < to) {
    const Count end = std::min(to, (from / share + 1) * share);
    slices.push_back(end - from);
    from = end;
  }
  return slices;
}

}  // namespace medley::plan
