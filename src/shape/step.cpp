#include "shape/step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <medley/error.hpp>
#include <vector>

#include "cost/cost.hpp"
#include "model/tensors.hpp"
#include "plan/groups.hpp"
#include "plan/view.hpp"

namespace medley::shape {
namespace {

/// Time of a block's blocking collectives and of the asynchronous ones that no computation hides.
double exchange_us(const Pricer& pricer, const Model& model, const Workload& work, const Block& block) {
  if (work.layout.tp == 1 && work.layout.cp == 1 && work.layout.ep == 1) return 0;
  const LinkTime links(pricer.machine());
  double us = 0;
  for (const plan::Entry& entry : block_entries(model, work, block)) {
    if (entry.kind != plan::Kind::comm || entry.token != 0) continue;
    const GroupShape shape = group_shape(plan::group_ranks(work.layout, 0, entry.group), pricer.machine());
    us += links.collective_us(entry.op, double(entry.bytes), shape);
  }
  return us;
}

// A stage receives activations before a forward pass and gradients before a backward pass, and 1F1B waits for
// both.
double stage_exchange_us(const Pricer& pricer, const Model& model, const Workload& work) {
  if (work.layout.pp == 1) return 0;
  const double split = work.layout.sp ? work.layout.tp : 1;
  const double bytes = double(work.tokens()) * double(model.hidden) * 2 / split;
  const bool near = work.layout.world() <= pricer.machine().gpus_per_host;
  return (work.layout.mode == Mode::train ? 2 : 1) * LinkTime(pricer.machine()).point_to_point_us(bytes, near);
}

Count elements_of(const std::vector<plan::Tensor>& slices, const Layout& layout) {
  Count total = 0;
  for (const auto& tensor : slices)
    if (!tensor.tied) total += tensor.part == plan::Part::expert ? tensor.elements() / layout.ep : tensor.elements();
  return total;
}

struct Stages {
  double flops = 0;
  int slowest = 0;
  Cost slowest_cost;
};

// Layers are distributed as the framework does it.
Stages stages_of(const Model& model, const Workload& work, const Step& step, double exchange) {
  Stages out;
  for (int stage = 0; stage < work.layout.pp; ++stage) {
    Cost cost;
    for (const plan::Chunk& chunk : plan::chunks_of(model, work.layout, stage, {})) {
      for (Count i = chunk.first; i < chunk.first + chunk.count; ++i) cost += step.layers.at(model.kind(i));
      if (chunk.embedding) cost += step.embedding;
      if (chunk.head) cost += step.head;
    }
    cost.communication += exchange;
    out.flops += cost.flops;
    if (cost.us() > out.slowest_cost.us()) out.slowest = stage, out.slowest_cost = cost;
  }
  return out;
}

// plan::check rejects these too, but the advisor can say which counts would work.
void refuse_heads(const Model& model, const Layout& layout) {
  if (layout.tp < 1 || model.heads % layout.tp == 0) return;
  const Count below = model.heads / layout.tp * layout.tp, above = below + layout.tp;
  throw Error(ErrorKind::invalid,
              fmt::format("{}: {} attention heads cannot be split over tp {}: rule 4 "
                          "wants heads divisible by tp; {}{} heads would do",
                          model.name, model.heads, layout.tp, below > 0 ? fmt::format("{} or ", below) : "", above));
}

}  // namespace

void check(const Model& model, Workload& work) {
  Layout& layout = work.layout;
  refuse_heads(model, layout);
  if (layout.global_batch == 0 && layout.pp > 1 && layout.micro_batch > 0 && layout.dp > 0)
    layout.global_batch = plan::product({4, layout.pp, layout.micro_batch, layout.dp}, "global batch");
  plan::check(layout, model);
  const auto divisible = [&](std::string_view what, Count value) {
    if (value % layout.tp != 0)
      throw Error(ErrorKind::invalid,
                  fmt::format("layout: {} {} is not divisible by tp {}: each rank must hold an equal share", what,
                              value, layout.tp));
  };
  if (model.moe_layers() < model.layers) divisible("ffn width", model.ffn);
  if (model.moe()) divisible("expert ffn width", model.moe_ffn);
  plan::product({work.tokens(), std::max({model.hidden, model.ffn, model.vocab}), 8}, "activations of a micro-batch");
}

Count parameters_per_rank(const Model& model, const Layout& layout) {
  const Model local = plan::local_model(model, layout);
  Count total = 0, left = plan::ceil_div(model.layers, layout.pp);
  // Largest kind first: the fullest stage has an even share of it.
  auto kinds = model.kinds();
  std::ranges::sort(kinds, std::greater{}, [](const auto& kind) { return kind.first; });
  for (const auto& [kind, count] : kinds) {
    const Count here = std::min(left, plan::ceil_div(count, layout.pp));
    total += here * elements_of(plan::layer_tensors(local, kind), layout);
    left -= here;
  }
  const Count first = elements_of(plan::embedding_tensors(local), layout),
              last = elements_of(plan::head_tensors(local), layout);
  return total + (layout.pp == 1 ? first + last : std::max(first, last));
}

// The parts come from the operators; the total is the cost model's time of the schedule, so that it equals
// that of `medley plan`.
Step step_time(Pricer& pricer, const Model& model, const Workload& work) {
  Step step;
  const auto block = [&](const Block& kind, const Operators& operators) {
    Cost cost = pricer.price(operators);
    cost.communication = exchange_us(pricer, model, work, kind);
    return cost;
  };
  Count shown = 0;
  for (const auto& [kind, count] : model.kinds()) {
    const Cost& cost = step.layers[kind] = block({plan::BlockKind::layer, kind}, layer_operators(model, work, kind));
    if (kind.moe != (model.moe_layers() > 0)) continue;
    step.layer += cost * double(count);
    shown += count;
  }
  step.layer = step.layer * (1 / double(shown));
  step.layer_us = step.layer.us();
  step.embedding = block({plan::BlockKind::embedding}, embedding_operators(model, work));
  step.head = block({plan::BlockKind::head}, head_operators(model, work));

  const Stages stages = stages_of(model, work, step, stage_exchange_us(pricer, model, work));
  step.stage = stages.slowest_cost;
  step.micro_batches = work.layout.micro_batches();
  const Count rank = plan::rank_of(work.layout, {.dp = 0, .tp = 0, .pp = stages.slowest, .cp = 0});
  const StepCost whole = cost::Step(model, work.layout, work.framework, rank).cost(pricer.machine(), pricer.kernels());
  step.step_us = whole.step_us;
  step.bubble_us = at(whole.spent, Cause::bubble);
  step.optimizer_us = at(whole.spent, Cause::optimizer);
  step.launch_us = at(whole.spent, Cause::launch);
  step.tokens_per_s = whole.tokens_per_s_per_gpu;
  step.tflops = whole.tflops_per_gpu;
  step.efficiency = step.tflops / pricer.gpu().peak_tflops(work.type());
  return step;
}

}  // namespace medley::shape
