#include "shape/step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <medley/error.hpp>
#include <vector>

#include "plan/tensors.hpp"
#include "plan/view.hpp"
#include "shape/link.hpp"
#include "shape/operator_list.hpp"

namespace medley::shape {
namespace {

// Two all_reduces forward and two backward for each layer; sequence parallelism turns each into an all_gather
// and a reduce_scatter of the same tensor. A parallel block (GPT-J, Falcon) sums attention and MLP before one
// all_reduce.
double layer_exchange_us(const Pricer& pricer, const Model& model, const Workload& work) {
  if (work.layout.tp == 1) return 0;
  const double bytes = double(work.tokens()) * double(model.hidden) * activation_bytes;
  const int passes = work.mode == Mode::train ? (work.layout.recompute == plan::Recompute::full ? 3 : 2) : 1;
  const int sums = model.parallel_block ? 1 : 2;
  const Gpu& gpu = pricer.gpu().gpu();
  const double one = work.layout.sp ? link_us(gpu, Op::all_gather, bytes, work.layout.tp) +
                                          link_us(gpu, Op::reduce_scatter, bytes, work.layout.tp)
                                    : link_us(gpu, Op::all_reduce, bytes, work.layout.tp);
  return sums * passes * one;
}

// A stage receives activations before a forward and gradients before a backward, and 1F1B waits for both.
double stage_exchange_us(const Pricer& pricer, const Model& model, const Workload& work) {
  if (work.layout.pp == 1) return 0;
  const double split = work.layout.sp ? work.layout.tp : 1;
  const double bytes = double(work.tokens()) * double(model.hidden) * activation_bytes / split;
  return (work.mode == Mode::train ? 2 : 1) * link_us(pricer.gpu().gpu(), Op::send, bytes, 2);
}

Count elements_of(const std::vector<plan::Tensor>& slices, const Layout& layout) {
  Count total = 0;
  for (const auto& tensor : slices)
    if (!tensor.tied)
      total += tensor.part == plan::Part::expert ? tensor.elements() / layout.ep : tensor.elements();
  return total;
}

struct Stages {
  double slowest = 0, sum = 0, flops = 0;
  Cost slowest_cost;
};

// Layers are dealt out as evenly as they go, the first stages taking one more.
Stages stages_of(const Model& model, const Workload& work, const Step& step, double exchange) {
  Stages out;
  const int pp = work.layout.pp;
  Count next = 0;
  for (int stage = 0; stage < pp; ++stage) {
    const Count layers = model.layers / pp + (stage < model.layers % pp);
    Count routed = 0;
    if (model.moe())
      for (Count i = next; i < next + layers; ++i) routed += model.moe_layer(i);
    next += layers;
    Cost cost = step.dense_layer * double(layers - routed);
    cost += step.moe_layer * double(routed);
    if (stage == 0) cost += step.embedding;
    if (stage == pp - 1) cost += step.head;
    cost.communication += exchange;
    const double total = cost.us();
    out.sum += total;
    out.flops += cost.flops;
    if (total > out.slowest) out.slowest = total, out.slowest_cost = cost;
  }
  return out;
}

// plan::check refuses these too; an advisor can say which counts would do.
void refuse_heads(const Model& model, const Layout& layout) {
  if (layout.tp < 1 || model.heads % layout.tp == 0) return;
  const Count below = model.heads / layout.tp * layout.tp, above = below + layout.tp;
  throw Error(ErrorKind::invalid, fmt::format("{}: {} attention heads cannot be split over tp {}: rule 4 "
                                              "wants heads divisible by tp; {}{} heads would do",
                                              model.name, model.heads, layout.tp,
                                              below > 0 ? fmt::format("{} or ", below) : "", above));
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
                  fmt::format("layout: {} {} is not divisible by tp {}: each rank must hold an equal share",
                              what, value, layout.tp));
  };
  if (model.moe_layers() < model.layers) divisible("ffn width", model.ffn);
  if (model.moe()) divisible("expert ffn width", model.moe_ffn);
  plan::product({work.tokens(), std::max({model.hidden, model.ffn, model.vocab}), 8},
                "activations of a micro-batch");
}

Count parameters_per_rank(const Model& model, const Layout& layout) {
  const Model local = plan::local_model(model, layout);
  const Count routed = plan::ceil_div(model.moe_layers(), layout.pp);
  const Count dense = plan::ceil_div(model.layers, layout.pp) - routed;
  Count total = 0;
  if (routed > 0) total += routed * elements_of(plan::layer_tensors(local, true), layout);
  if (dense > 0) total += dense * elements_of(plan::layer_tensors(local, false), layout);
  const Count first = elements_of(plan::embedding_tensors(local), layout),
              last = elements_of(plan::head_tensors(local), layout);
  return total + (layout.pp == 1 ? first + last : std::max(first, last));
}

Step step_time(Pricer& pricer, const Model& model, const Workload& work) {
  Step step;
  const Count routed = model.moe_layers();
  const double exchange = layer_exchange_us(pricer, model, work);
  const auto layer = [&](bool moe) {
    Cost cost = pricer.price(layer_operators(model, work, moe));
    cost.communication = exchange;
    return cost;
  };
  if (routed < model.layers) step.dense_layer = layer(false);
  if (routed > 0) step.moe_layer = layer(true);
  step.embedding = pricer.price(embedding_operators(model, work));
  step.head = pricer.price(head_operators(model, work));
  step.layer_us = (routed > 0 ? step.moe_layer : step.dense_layer).us();

  const Stages stages = stages_of(model, work, step, stage_exchange_us(pricer, model, work));
  step.stage = stages.slowest_cost;
  step.micro_batches = work.layout.micro_batches();
  step.bubble_us = stages.sum - stages.slowest;
  if (work.mode == Mode::train) {
    Count updated = parameters_per_rank(model, work.layout);
    if (work.layout.zero > 0) updated = plan::ceil_div(updated, work.layout.dp);
    step.optimizer_us = pricer.price(optimizer_operators(updated)).us();
  }
  step.step_us = double(step.micro_batches) * stages.slowest + step.bubble_us + step.optimizer_us;
  const double gpus = double(work.layout.tp) * work.layout.pp * work.layout.cp;
  const double tokens =
      double(work.mode == Mode::decode ? work.layout.micro_batch : work.layout.micro_batch * work.layout.seq);
  step.tokens_per_s = tokens * double(step.micro_batches) / gpus / step.step_us * 1e6;
  step.tflops = stages.flops / work.layout.pp * double(step.micro_batches) / step.step_us * 1e-6;
  step.efficiency = step.tflops / pricer.gpu().peak_tflops(work.type);
  return step;
}

}  // namespace medley::shape
