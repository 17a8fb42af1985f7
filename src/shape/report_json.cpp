#include "cost/gemm_times.hpp"
#include "shape/report.hpp"

namespace medley::shape {

using nlohmann::ordered_json;

namespace {

ordered_json gemm_json(const PricedOperator& p, const Gemm& g) {
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
          {"lost_us", to_json(p.gemm.lost)}};
}

ordered_json cost_json(const Cost& cost) {
  return {{"gemm_us", cost.gemm},
          {"attention_us", cost.attention},
          {"memory_us", cost.memory},
          {"communication_us", cost.communication}};
}

// Percentages of an uncalibrated GPU would look like knowledge: its gains are null, with words beside them.
ordered_json advice_json(const ReportedAdvice& a, bool calibrated) {
  return {{"rule", rule_text(a.rule)},
          {"rule_number", a.rule},
          {"knob", name(a.change.knob)},
          {"was", a.change.was},
          {"now", a.change.now},
          {"gain", calibrated ? ordered_json(a.gain) : ordered_json()},
          {"gain_text", gain_text(a.gain, calibrated)},
          {"parameters_change", a.parameters_change},
          {"heads", a.change.model.heads},
          {"head_dim", a.change.model.head_dim},
          {"why", a.why}};
}

ordered_json rule_json(const RuleCheck& r) {
  return {{"rule", r.text},     {"number", r.number}, {"holds", r.holds},
          {"agrees", r.agrees}, {"found", r.found},   {"verdict", r.verdict}};
}

ordered_json layout_json(const Layout& l) {
  return {{"tp", l.tp},  {"pp", l.pp}, {"dp", l.dp}, {"micro_batch", l.micro_batch}, {"global_batch", l.global_batch},
          {"seq", l.seq}};
}

}  // namespace

ordered_json to_json(const ShapeReport& report) {
  ordered_json gemms = ordered_json::array(), others = ordered_json::array(), rules = ordered_json::array(),
               advice = ordered_json::array(), lost;
  for (const auto& p : report.operators) {
    if (const auto* g = std::get_if<Gemm>(&p.op.work)) gemms.push_back(gemm_json(p, *g));
    else
      others.push_back({{"name", p.op.label()},
                        {"block", name(p.block)},
                        {"count", p.op.count * p.times},
                        {"kind", std::holds_alternative<Attention>(p.op.work) ? "attention" : "memory"},
                        {"predicted_us", p.call_us()}});
  }
  for (const auto& r : report.rules) rules.push_back(rule_json(r));
  for (const auto& a : report.advice) advice.push_back(advice_json(a, report.gpu.calibrated()));
  for (const auto& [cause, us] : report.lost) lost[std::string(cause)] = us;
  return {{"model", report.model.name},
          {"gpu", report.gpu.gpu().name},
          {"calibrated", report.gpu.calibrated()},
          {"gpu_model", report.gpu.provenance()},
          {"mode", name(report.work.layout.mode)},
          {"layout", layout_json(report.work.layout)},
          {"parameters", report.parameters},
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
            {"usable", report.usable_memory},
            {"largest_micro_batch", report.largest_micro_batch}}},
          {"rules", rules},
          {"advice", advice}};
}

}  // namespace medley::shape
