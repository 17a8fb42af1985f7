// How `medley shape` shows its report: operators, the layer, the step, the rules and the advice.
#include "cli/shape_report.hpp"

#include <fmt/format.h>

#include "cli/plan.hpp"
#include "cli/shape_options.hpp"
#include "cli/table.hpp"

namespace medley::cli {
namespace {

using shape::ShapeReport;

// Rows as (m×k)·(k×n) with tokens first, as papers print them; cuBLAS sees the same product with m and n
// exchanged.
void print_operators(const ShapeReport& report) {
  Table table({"operator", "calls", "m", "n", "k", "batch", "layout", "µs", "TFLOP/s", "efficiency", "lost to"});
  for (const auto& p : report.operators) {
    const std::string calls = fmt::format("{}", p.op.count * p.times), us = fmt::format("{:.1f}", p.call_us());
    if (const auto* g = std::get_if<shape::Gemm>(&p.op.work)) {
      table.add({p.op.label(), calls, std::to_string(g->n), std::to_string(g->m), std::to_string(g->k),
                 std::to_string(g->batch), std::string(name(g->layout)), us, fmt::format("{:.0f}", p.tflops),
                 fmt::format("{:.0f} %", 100 * p.efficiency), std::string(p.gemm.lost_to())});
    } else if (std::holds_alternative<shape::Attention>(p.op.work)) {
      table.add({p.op.label(), calls, "", "", "", "", "", us, fmt::format("{:.0f}", p.tflops),
                 fmt::format("{:.0f} %", 100 * p.efficiency), ""});
    } else {
      table.add({p.op.label(), calls, "", "", "", "", "", us, "", "", "memory"});
    }
  }
  fmt::print("{}\n", table.str());
}

std::string milliseconds(double us) {
  return us < 10000 ? fmt::format("{:.1f} µs", us) : fmt::format("{:.2f} ms", us / 1000);
}

void print_step(const ShapeReport& report) {
  const shape::Step& step = report.step;
  const shape::Cost& layer = step.layer;
  fmt::print("layer  {}: products {}, attention {}, memory-bound {}, communication {}\n", milliseconds(step.layer_us),
             milliseconds(layer.gemm), milliseconds(layer.attention), milliseconds(layer.memory),
             milliseconds(layer.communication));
  fmt::print(
      "step   {}: {} micro-batch{} of {} on the slowest stage, bubble {}, optimizer {}, waiting for the host "
      "{}\n",
      milliseconds(step.step_us), step.micro_batches, step.micro_batches > 1 ? "es" : "", milliseconds(step.stage.us()),
      milliseconds(step.bubble_us), milliseconds(step.optimizer_us), milliseconds(step.launch_us));
  fmt::print("       {:.0f} tokens/s and {:.0f} TFLOP/s per GPU, {:.0f} % of its best rate\n", step.tokens_per_s,
             step.tflops, 100 * step.efficiency);
  std::string lost;
  for (const auto& [cause, us] : report.lost)
    lost += fmt::format("{}{} {:.1f} %", lost.empty() ? "" : ", ", cause, 100 * us / report.products_us);
  fmt::print("lost   of the products' time: {}\n", lost);
  fmt::print(
      "memory {} of {} usable: {}\n\n", size_text(report.memory), size_text(report.usable_memory),
      report.memory <= report.usable_memory ? fmt::format("fits, largest micro-batch {}", report.largest_micro_batch)
      : report.largest_micro_batch > 0 ? fmt::format("does not fit, largest micro-batch {}", report.largest_micro_batch)
                                       : "does not fit, at any micro-batch");
}

void print_rules(const ShapeReport& report) {
  Table table({"rule", "", "found", "verdict"});
  for (const auto& rule : report.rules)
    table.add({std::to_string(rule.number), std::string(rule.text), rule.found, rule.verdict});
  fmt::print("{}\n", table.str());
}

std::string parameters_text(double change) { return fmt::format("{:+.2f} %", 100 * change); }

void print_advice(const ShapeReport& report) {
  if (report.advice.empty()) {
    fmt::print("advice: nothing nearby is predicted to run faster\n");
    return;
  }
  Table table({"change", "from", "to", "speed", "parameters", "because"});
  for (const auto& a : report.advice) {
    std::string now = std::to_string(a.change.now);
    if (a.change.knob == shape::Knob::heads) now += fmt::format(" (head {})", a.change.model.head_dim);
    if (a.change.knob == shape::Knob::hidden)
      now += fmt::format(" (heads {}, ffn {})", a.change.model.heads,
                         a.change.model.moe() ? a.change.model.moe_ffn : a.change.model.ffn);
    table.add({std::string(name(a.change.knob)), std::to_string(a.change.was), now,
               shape::gain_text(a.gain, report.gpu.calibrated()), parameters_text(a.parameters_change), a.why});
  }
  fmt::print("{}", table.str());
  const shape::Model& m = report.combined.model;
  if (report.advice.size() > 1 && report.combined.gain > 0)
    fmt::print("together: hidden {}, heads {}, ffn {}, layers {}, vocab {}: {}, parameters {}\n", m.hidden, m.heads,
               m.moe() ? m.moe_ffn : m.ffn, m.layers, m.vocab,
               shape::gain_text(report.combined.gain, report.gpu.calibrated()),
               parameters_text(report.combined.parameters));
  fmt::print("Speed is predicted; what a changed shape does to the model's quality is not.\n");
}

}  // namespace

void print_shape_report(const ShapeReport& report) {
  const shape::Layout& l = report.work.layout;
  fmt::print("{}: {:.2f} B parameters, {}, tp {}, pp {}, micro-batch {} of {} tokens\n{}\n\n", report.model.name,
             double(report.parameters) / 1e9, shape::name(l.mode), l.tp, l.pp, l.micro_batch, l.seq,
             trust_line(report.gpu));
  print_operators(report);
  print_step(report);
  print_rules(report);
  print_advice(report);
}

}  // namespace medley::cli
