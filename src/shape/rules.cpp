#include "shape/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "shape/capacity.hpp"

namespace medley::shape {
namespace {

constexpr double noticeable = 0.01;

Count power_of_two_in(Count value) { return value & -value; }

std::string power_text(std::string_view what, Count value) {
  return fmt::format("{} {} (multiple of {})", what, value, power_of_two_in(value));
}

struct Checker {
  Pricer& pricer;
  const Model& model;
  const Workload& work;
  Step base;
  Count full;  // elements to which the rule aligns on this GPU

  bool calibrated() const { return pricer.gpu().calibrated(); }

  std::optional<Advice> nearest(Changes changes, auto&& obeys) {
    std::erase_if(changes, [&](const Change& c) { return !obeys(c); });
    auto best = best_of(pricer, base, model, changes);
    if (best.empty()) return std::nullopt;
    return best.front();
  }

  // Rule and prediction disagree when following a broken rule gains nothing; `why_not` then says why.
  void judge(RuleCheck& rule, const std::string& why_not) {
    if (rule.holds) {
      rule.verdict = "holds";
      return;
    }
    if (!rule.obeying) {
      rule.verdict = "broken; no shape nearby obeys it";
      return;
    }
    const Advice& advice = *rule.obeying;
    const std::string change = fmt::format("{} {}", name(advice.change.knob), advice.change.now);
    rule.agrees = advice.net_gain() >= noticeable;
    // Faster kernels only wait longer when the host issues them too slowly.
    const bool host_bound = base.launch_us > noticeable * base.step_us;
    rule.verdict =
        rule.agrees ? fmt::format("broken; {} is {}", change, gain_text(advice.net_gain(), calibrated()))
                    : fmt::format("broken, but obeying it ({}) buys nothing here: {}", change,
                                  host_bound ? "the host issues kernels too slowly for this GPU; a larger micro-batch, "
                                               "compile=on or cuda_graphs=on come first"
                                             : why_not);
  }

  RuleCheck vocabulary() {
    const Count unit = full * work.layout.tp;
    RuleCheck rule{
        .number = 1,
        .text = rule_text(1),
        .holds = model.vocab % unit == 0,
        .found = power_text(work.layout.tp > 1 ? "vocab/t" : "vocab", plan::ceil_div(model.vocab, work.layout.tp))};
    if (!rule.holds)
      rule.obeying = nearest(vocabulary_changes(model, work), [&](const Change& c) { return c.now % unit == 0; });
    judge(rule, fmt::format("a multiple of {} keeps every row of the logits on 16-byte boundaries, which is "
                            "all this GPU asks for",
                            power_of_two_in(plan::ceil_div(model.vocab, work.layout.tp))));
    // a partial change may be as good as the full one
    if (rule.agrees && rule.obeying) {
      const auto any = best_of(pricer, base, model, vocabulary_changes(model, work));
      if (!any.empty() && any.front().change.now % unit != 0)
        rule.verdict += fmt::format("; {}, a multiple of {}, already does as well", any.front().change.now,
                                    power_of_two_in(any.front().change.now));
    }
    return rule;
  }

  RuleCheck micro_batch() {
    const Count now = work.layout.micro_batch, most = largest_micro_batch(pricer.gpu().gpu(), model, work);
    RuleCheck rule{
        .number = 2,
        .text = rule_text(2),
        .holds = now >= most,
        .found = most > 0 ? fmt::format("micro-batch {}, {} fits", now, most) : "not even one sequence fits this GPU"};
    if (!rule.holds)
      rule.obeying =
          nearest(micro_batch_changes(pricer.gpu().gpu(), model, work), [&](const Change& c) { return c.now == most; });
    judge(rule, fmt::format("{} tokens fill this GPU already", work.tokens()));
    if (most < now)
      rule.holds = false, rule.verdict = most > 0 ? "broken; this micro-batch does not fit"
                                                  : "nothing fits: raise tp, pp or ZeRO, or recompute";
    return rule;
  }

  RuleCheck powers_of_two() {
    const Count tokens = work.tokens(), head = model.query_head_dim(), share = model.hidden / work.layout.tp;
    RuleCheck rule{.number = 3, .text = rule_text(3)};
    rule.holds = (work.layout.mode == Mode::decode || tokens % full == 0) && head % full == 0 && share % full == 0;
    rule.found =
        fmt::format("{}, {}, {}", power_text("b·s", tokens), power_text("h/a", head), power_text("h/t", share));
    if (!rule.holds && head % full != 0)
      rule.obeying = nearest(head_changes(model, work), [&](const Change& c) { return c.model.head_dim % full == 0; });
    else if (!rule.holds && share % full != 0)
      rule.obeying = nearest(hidden_changes(model, work, 0.05),
                             [&](const Change& c) { return c.now / work.layout.tp % full == 0; });
    judge(rule, head % full == 0 ? "a narrower alignment is enough on this GPU"
                : work.layout.flags.flash_attention
                    ? "fused attention pads a head inside the chip, and scores never reach memory"
                    : "the scores' products are bound by memory, not by arithmetic");
    if (!rule.holds && !rule.obeying && head % full == 0 && share % full == 0)
      rule.verdict = "broken by b·s: choose sequence or micro-batch so that their product is a multiple of 64";
    return rule;
  }

  RuleCheck whole_heads() {
    return {.number = 4,
            .text = rule_text(4),
            .holds = true,
            .found = fmt::format("{} heads, tp {}", model.heads, work.layout.tp),
            .obeying = {},
            .verdict = "holds"};
  }

  RuleCheck least_tp() {
    RuleCheck rule{.number = 5, .text = rule_text(5), .found = fmt::format("tp {}", work.layout.tp)};
    rule.obeying = nearest(tensor_parallel_changes(model, work), [](const Change&) { return true; });
    rule.holds = !rule.obeying;
    if (rule.holds && work.layout.tp > 1) rule.found += ", no smaller one fits";
    judge(rule, "communication is a small part of this step");
    return rule;
  }

  RuleCheck gated_width() {
    const Count width = model.moe() ? model.moe_ffn : model.ffn, share = width / work.layout.tp;
    RuleCheck rule{
        .number = 6,
        .text = rule_text(6),
        .holds = share % full == 0,
        .found = fmt::format("{}, {:.2f} h", power_text("ffn/t", share), double(width) / double(model.hidden))};
    if (!model.gated) {
      rule.holds = true;
      rule.verdict = "does not apply: the MLP is not gated";
      return rule;
    }
    if (!rule.holds)
      rule.obeying = nearest(ffn_changes(model, work, 0.03), [&](const Change& c) {
        return (c.knob == Knob::expert_ffn) == model.moe() && c.now / work.layout.tp % full == 0;
      });
    judge(rule, fmt::format("a multiple of {} is enough on this GPU", power_of_two_in(share)));
    return rule;
  }

  RuleCheck even_stages() {
    RuleCheck rule{.number = 7,
                   .text = rule_text(7),
                   .holds = model.layers % work.layout.pp == 0,
                   .found = fmt::format("{} layers, pp {}", model.layers, work.layout.pp)};
    if (!rule.holds) rule.obeying = nearest(layer_changes(model, work), [](const Change&) { return true; });
    judge(rule, "the stage with the logits is the slowest either way");
    return rule;
  }
};

}  // namespace

std::string_view rule_text(int number) noexcept {
  constexpr std::array<std::string_view, 8> texts{"",
                                                  "vocabulary divisible by 64 (8 on V100), on every rank",
                                                  "micro-batch as large as fits",
                                                  "b·s, h/a and h/t divisible by 64 (8 on V100)",
                                                  "heads divisible by tp",
                                                  "tp as small as possible",
                                                  "gated MLP: search for a width near 8h/3",
                                                  "layers divisible by the pipeline stages"};
  return texts[std::size_t(std::clamp(number, 0, 7))];
}

std::string gain_text(double gain, bool calibrated) {
  if (calibrated) return fmt::format("{:.1f} % {}", 100 * std::abs(gain), gain < 0 ? "slower" : "faster");
  if (gain >= 0.10) return "clearly faster";
  if (gain >= 0.03) return "faster";
  if (gain >= noticeable) return "a little faster";
  return gain > -noticeable ? "about as fast" : "slower";
}

std::vector<RuleCheck> check_rules(Pricer& pricer, const Model& model, const Workload& work) {
  Checker checker{pricer, model, work, step_time(pricer, model, work), pricer.gpu().gpu().full_alignment()};
  return {checker.vocabulary(), checker.micro_batch(), checker.powers_of_two(), checker.whole_heads(),
          checker.least_tp(),   checker.gated_width(), checker.even_stages()};
}

}  // namespace medley::shape
