#include "cli/shape_report.hpp"

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/table.hpp"
#include "shape/advice.hpp"
#include "shape/capacity.hpp"
#include "shape/losses.hpp"
#include "shape/rules.hpp"

namespace medley::cli {
namespace shape_report {  // named: its using-directive stays out of files that share a unity build

using nlohmann::ordered_json;
using namespace shape;
using shape::Attention;
using shape::Gemm;

struct Report {
  Model model;
  Workload work;
  GpuModel gpu;
  std::vector<PricedOperator> operators;
  Step step;
  std::vector<RuleCheck> rules;
  std::vector<Advice> advice;
  Together together;
  double memory = 0;
  Count largest = 0;
};

Report make_report(const ShapeOptions& options) {
  const GpuModel gpu = GpuModel::named(options.gpu);
  Report report{.model = shape_model(options.model, options.as),
                .work = {},
                .gpu = gpu,
                .operators = {},
                .step = {},
                .rules = {},
                .advice = {},
                .together = {}};
  report.work = options.workload(report.model);
  Pricer pricer(gpu);
  report.operators = price_operators(gpu, report.model, report.work);
  report.step = step_time(pricer, report.model, report.work);
  report.rules = check_rules(pricer, report.model, report.work);
  report.advice = advise(pricer, report.model, report.work);
  report.together = apply(pricer, report.model, report.work, report.advice);
  report.memory = memory_bytes(report.model, report.work);
  report.largest = largest_micro_batch(gpu.gpu(), report.model, report.work);
  return report;
}

// Rows as (m×k)·(k×n) with tokens first, as papers print them; cuBLAS sees the same product with m and n
// exchanged.
void print_operators(const Report& report) {
  Table table(
      {"operator", "calls", "m", "n", "k", "batch", "layout", "µs", "TFLOP/s", "efficiency", "lost to"});
  for (const auto& p : report.operators) {
    const std::string calls = fmt::format("{}", p.op.count * p.times),
                      us = fmt::format("{:.1f}", p.us / double(p.op.count));
    if (const auto* g = std::get_if<Gemm>(&p.op.work)) {
      table.add({p.op.label(), calls, std::to_string(g->n), std::to_string(g->m), std::to_string(g->k),
                 std::to_string(g->batch), std::string(name(g->layout)), us,
                 fmt::format("{:.0f}", p.gemm.tflops), fmt::format("{:.0f} %", 100 * p.gemm.efficiency),
                 std::string(p.gemm.lost_to())});
    } else if (std::holds_alternative<Attention>(p.op.work)) {
      table.add(
          {p.op.label(), calls, "", "", "", "", "", us, fmt::format("{:.0f}", p.op.flops() / p.us * 1e-6),
           fmt::format("{:.0f} %", p.op.flops() / p.us * 1e-4 / report.gpu.peak_tflops(report.work.type())),
           ""});
    } else {
      table.add({p.op.label(), calls, "", "", "", "", "", us, "", "", "memory"});
    }
  }
  fmt::print("{}\n", table.str());
}

std::string milliseconds(double us) {
  return us < 10000 ? fmt::format("{:.1f} µs", us) : fmt::format("{:.2f} ms", us / 1000);
}

void print_step(const Report& report) {
  const Step& step = report.step;
  const Cost& layer = step.layer;
  const double passes = report.operators.empty() ? 0 : double(step.micro_batches);
  fmt::print("layer  {}: products {}, attention {}, memory-bound {}, communication {}\n",
             milliseconds(step.layer_us), milliseconds(layer.gemm), milliseconds(layer.attention),
             milliseconds(layer.memory), milliseconds(layer.communication));
  fmt::print("step   {}: {} micro-batch{} of {} on the slowest stage, bubble {}, optimizer {}, waiting for the host {}\n",
             milliseconds(step.step_us), step.micro_batches, passes > 1 ? "es" : "", milliseconds(step.stage.us()),
             milliseconds(step.bubble_us), milliseconds(step.optimizer_us), milliseconds(step.launch_us));
  fmt::print("       {:.0f} tokens/s and {:.0f} TFLOP/s per GPU, {:.0f} % of its best rate\n",
             step.tokens_per_s, step.tflops, 100 * step.efficiency);
  double products = 0;
  for (const auto& p : report.operators)
    if (p.is_gemm()) products += p.us * double(p.times);
  std::string lost;
  for (const auto& [cause, us] : by_cause(total_losses(report.operators)))
    lost += fmt::format("{}{} {:.1f} %", lost.empty() ? "" : ", ", cause, 100 * us / products);
  fmt::print("lost   of the products' time: {}\n", lost);
  const double usable = usable_bytes(report.gpu.gpu());
  fmt::print("memory {:.1f} of {:.0f} GB usable: {}\n\n", report.memory / 1e9, usable / 1e9,
             report.memory <= usable ? fmt::format("fits, largest micro-batch {}", report.largest)
             : report.largest > 0    ? fmt::format("does not fit, largest micro-batch {}", report.largest)
                                     : "does not fit, at any micro-batch");
}

void print_rules(const Report& report) {
  Table table({"rule", "", "found", "verdict"});
  for (const auto& rule : report.rules)
    table.add({std::to_string(rule.number), std::string(rule.text), rule.found, rule.verdict});
  fmt::print("{}\n", table.str());
}

std::string parameters_text(double change) {
  return fmt::format("{:+.2f} %", 100 * change);
}

double parameters_change(const Report& report, const Advice& advice) {
  return double(plan::count_parameters(advice.change.model).total) /
             double(plan::count_parameters(report.model).total) -
         1;
}

void print_advice(const Report& report) {
  if (report.advice.empty()) {
    fmt::print("advice: nothing nearby is predicted to run faster\n");
    return;
  }
  Table table({"change", "from", "to", "speed", "parameters", "because"});
  for (const auto& a : report.advice) {
    std::string now = std::to_string(a.change.now);
    if (a.change.knob == Knob::heads) now += fmt::format(" (head {})", a.change.model.head_dim);
    if (a.change.knob == Knob::hidden)
      now += fmt::format(" (heads {}, ffn {})", a.change.model.heads,
                         a.change.model.moe() ? a.change.model.moe_ffn : a.change.model.ffn);
    table.add({std::string(name(a.change.knob)), std::to_string(a.change.was), now,
               gain_text(a.gain, report.gpu.calibrated()), parameters_text(parameters_change(report, a)),
               a.why});
  }
  fmt::print("{}", table.str());
  const Model& m = report.together.model;
  if (report.advice.size() > 1 && report.together.gain > 0)
    fmt::print("together: hidden {}, heads {}, ffn {}, layers {}, vocab {}: {}, parameters {}\n", m.hidden,
               m.heads, m.moe() ? m.moe_ffn : m.ffn, m.layers, m.vocab,
               gain_text(report.together.gain, report.gpu.calibrated()),
               parameters_text(report.together.parameters));
  fmt::print("Speed is predicted; what a changed shape does to the model's quality is not.\n");
}

ordered_json gemm_json(const PricedOperator& p, const Gemm& g) {
  ordered_json lost;
  for (const auto& [cause, us] : by_cause(p.gemm.lost)) lost[std::string(cause)] = us;
  return {{"name", p.op.label()},
          {"block", name(p.block)},
          {"pass", name(p.op.pass)},
          {"count", p.op.count * p.times},
          {"m", g.n},
          {"n", g.m},
          {"k", g.k},
          {"batch", g.batch},
          {"layout", name(g.layout)},
          {"predicted_us", p.gemm.us},
          {"tflops", p.gemm.tflops},
          {"efficiency", p.gemm.efficiency},
          {"lost_to", p.gemm.lost_to()},
          {"lost_us", lost}};
}

ordered_json cost_json(const Cost& cost) {
  return {{"gemm_us", cost.gemm},
          {"attention_us", cost.attention},
          {"memory_us", cost.memory},
          {"communication_us", cost.communication}};
}

// Percentages of an uncalibrated GPU would look like knowledge: its gains are null and the words stand beside
// them.
ordered_json advice_json(const Report& report, const Advice& a) {
  const bool calibrated = report.gpu.calibrated();
  return {{"rule", rule_text(a.rule)},
          {"rule_number", a.rule},
          {"knob", name(a.change.knob)},
          {"was", a.change.was},
          {"now", a.change.now},
          {"gain", calibrated ? ordered_json(a.gain) : ordered_json()},
          {"gain_text", gain_text(a.gain, calibrated)},
          {"parameters_change", parameters_change(report, a)},
          {"heads", a.change.model.heads},
          {"head_dim", a.change.model.head_dim},
          {"why", a.why}};
}

ordered_json to_json(const Report& report) {
  ordered_json gemms = ordered_json::array(), others = ordered_json::array(), rules = ordered_json::array(),
               advice = ordered_json::array();
  for (const auto& p : report.operators) {
    if (const auto* g = std::get_if<Gemm>(&p.op.work))
      gemms.push_back(gemm_json(p, *g));
    else
      others.push_back({{"name", p.op.label()},
                        {"block", name(p.block)},
                        {"count", p.op.count * p.times},
                        {"kind", std::holds_alternative<Attention>(p.op.work) ? "attention" : "memory"},
                        {"predicted_us", p.us / double(p.op.count)}});
  }
  for (const auto& r : report.rules)
    rules.push_back({{"rule", r.text},
                     {"number", r.number},
                     {"holds", r.holds},
                     {"agrees", r.agrees},
                     {"found", r.found},
                     {"verdict", r.verdict}});
  for (const auto& a : report.advice) advice.push_back(advice_json(report, a));
  const Layout& l = report.work.layout;
  ordered_json lost;
  for (const auto& [cause, us] : by_cause(total_losses(report.operators))) lost[std::string(cause)] = us;
  return {{"model", report.model.name},
          {"gpu", report.gpu.gpu().name},
          {"calibrated", report.gpu.calibrated()},
          {"gpu_model", report.gpu.provenance()},
          {"mode", name(report.work.layout.mode)},
          {"layout",
           {{"tp", l.tp},
            {"pp", l.pp},
            {"dp", l.dp},
            {"micro_batch", l.micro_batch},
            {"global_batch", l.global_batch},
            {"seq", l.seq}}},
          {"parameters", plan::count_parameters(report.model).total},
          {"gemms", gemms},
          {"others", others},
          {"layer_us", report.step.layer_us},
          {"layer", cost_json(report.step.layer)},
          {"step_us", report.step.step_us},
          {"micro_batches", report.step.micro_batches},
          {"stage", cost_json(report.step.stage)},
          {"bubble_us", report.step.bubble_us},
          {"optimizer_us", report.step.optimizer_us},
          {"tokens_per_s_per_gpu", report.step.tokens_per_s},
          {"tflops_per_gpu", report.step.tflops},
          {"efficiency", report.step.efficiency},
          {"lost_us", lost},
          {"memory",
           {{"bytes", report.memory},
            {"usable", usable_bytes(report.gpu.gpu())},
            {"largest_micro_batch", report.largest}}},
          {"rules", rules},
          {"advice", advice}};
}

}  // namespace shape_report

int report_shape(const ShapeOptions& options) {
  using namespace shape_report;
  const Report report = make_report(options);
  if (options.json != "-") {
    const Layout& l = report.work.layout;
    fmt::print("{}: {:.2f} B parameters, {}, tp {}, pp {}, micro-batch {} of {} tokens\n{}\n\n",
               report.model.name, double(plan::count_parameters(report.model).total) / 1e9,
               name(report.work.layout.mode), l.tp, l.pp, l.micro_batch, l.seq, trust_line(report.gpu));
    print_operators(report);
    print_step(report);
    print_rules(report);
    print_advice(report);
  }
  write_json(options.json, to_json(report));
  return 0;
}

}  // namespace medley::cli
