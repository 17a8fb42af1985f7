#include "shape/advice.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <medley/error.hpp>
#include <optional>

#include "shape/capacity.hpp"
#include "shape/losses.hpp"

namespace medley::shape {
namespace {

// Net gains that differ by less than this are equal for the model (its own error is larger): the nearest
// shape wins.
constexpr double half_a_point = 0.005;

int rule_of(Knob knob, const Model& model) {
  switch (knob) {
    case Knob::vocabulary: return 1;
    case Knob::micro_batch: return 2;
    case Knob::heads:
    case Knob::hidden: return 3;
    case Knob::tensor_parallel: return 5;
    case Knob::ffn:
    case Knob::expert_ffn: return model.gated ? 6 : 3;
    case Knob::layers: return 7;
  }
  return 0;
}

// Padding the vocabulary adds rows that no token uses: they do not count as model size.
double useful_parameters(const Change& change, const Model& model) {
  if (change.knob == Knob::vocabulary) return 0;
  return double(plan::count_parameters(change.model).total) / double(plan::count_parameters(model).total) - 1;
}

std::optional<Advice> priced(Pricer& pricer, const Step& base, const Model& model, const Change& change) {
  Advice advice{.rule = rule_of(change.knob, model), .change = change};
  try {
    check(advice.change.model, advice.change.work);
    if (change.knob == Knob::tensor_parallel && !fits(pricer.gpu().gpu(), change.model, change.work))
      return std::nullopt;
    const Step step = step_time(pricer, advice.change.model, advice.change.work);
    advice.gain = step.tokens_per_s / base.tokens_per_s - 1;
    // a larger micro-batch also spreads the optimizer over more tokens, but accumulation would do that as
    // well
    if (change.knob == Knob::micro_batch)
      advice.gain = double(change.now) / double(change.was) * base.stage.us() / step.stage.us() - 1;
    advice.parameters = useful_parameters(change, model);
  } catch (const Error&) {  // a neighbour with no valid layout is no advice
    return std::nullopt;
  }
  return advice;
}

}  // namespace

std::vector<Advice> best_of(Pricer& pricer, const Step& base, const Model& model, const Changes& changes) {
  std::vector<Advice> all;
  for (const Change& change : changes)
    if (auto advice = priced(pricer, base, model, change)) all.push_back(std::move(*advice));
  if (all.empty()) return all;
  const double most = std::ranges::max_element(all, {}, &Advice::net_gain)->net_gain();
  std::erase_if(all, [&](const Advice& a) { return a.net_gain() < most - half_a_point; });
  const auto distance = [](const Advice& a) { return std::llabs(a.change.now - a.change.was); };
  return {*std::ranges::min_element(all, {}, distance)};
}

std::vector<Advice> advise(Pricer& pricer, const Model& model, const Workload& work, const AdviceLimits& limits) {
  const Step base = step_time(pricer, model, work);
  Changes widths = ffn_changes(model, work, limits.ffn), expert_widths;
  std::ranges::copy_if(widths, std::back_inserter(expert_widths),
                       [](const Change& c) { return c.knob == Knob::expert_ffn; });
  std::erase_if(widths, [](const Change& c) { return c.knob == Knob::expert_ffn; });
  std::vector<Advice> out;
  for (const Changes& changes :
       {vocabulary_changes(model, work), head_changes(model, work), widths, expert_widths,
        hidden_changes(model, work, limits.hidden), layer_changes(model, work), tensor_parallel_changes(model, work),
        micro_batch_changes(pricer.gpu().gpu(), model, work)})
    for (auto& advice : best_of(pricer, base, model, changes))
      // a wider model may be a gain for its size and still be slower: the user must ask for that
      if (advice.gain > 0 && advice.net_gain() >= limits.worthwhile) out.push_back(std::move(advice));
  std::ranges::sort(out, std::greater{}, &Advice::net_gain);
  const auto before = price_operators(pricer.gpu(), model, work);
  for (Advice& advice : out) {
    switch (advice.change.knob) {
      case Knob::layers: advice.why = "stages of equal depth do not wait for each other"; break;
      case Knob::micro_batch: advice.why = "each weight is read, and each kernel started, for more tokens"; break;
      case Knob::tensor_parallel: advice.why = "larger products on fewer GPUs, and less to exchange"; break;
      default:
        advice.why = largest_saving(before, price_operators(pricer.gpu(), advice.change.model, advice.change.work));
    }
  }
  return out;
}

CombinedAdvice apply(Pricer& pricer, const Model& model, const Workload& work, const std::vector<Advice>& advice) {
  CombinedAdvice out{.model = model};
  const double base = step_time(pricer, model, work).tokens_per_s;
  const double parameters = double(plan::count_parameters(model).total);
  double net = 0;
  for (const Advice& a : advice) {
    Model next = out.model;
    switch (a.change.knob) {
      case Knob::vocabulary: next.vocab = a.change.now; break;
      case Knob::ffn: next.ffn = a.change.now; break;
      case Knob::expert_ffn: next.moe_ffn = a.change.now; break;
      case Knob::layers: next.layers = a.change.now; break;
      case Knob::heads:
      case Knob::hidden: {
        if (next.hidden != model.hidden || next.heads != model.heads) continue;  // only one of the two at a time
        next.hidden = a.change.model.hidden;
        next.heads = a.change.model.heads;
        next.kv_heads = a.change.model.kv_heads;
        next.head_dim = a.change.model.head_dim;
        if (next.ffn == model.ffn) next.ffn = a.change.model.ffn;
        if (next.moe_ffn == model.moe_ffn) next.moe_ffn = a.change.model.moe_ffn;
        break;
      }
      case Knob::micro_batch:
      case Knob::tensor_parallel: continue;
    }
    const double gain = step_time(pricer, next, work).tokens_per_s / base - 1;
    const double grown = double(plan::count_parameters(next).total) / parameters - 1;
    if ((1 + gain) * (1 + grown) - 1 <= net) continue;
    net = (1 + gain) * (1 + grown) - 1;
    out = {.model = next, .gain = gain, .parameters = grown};
  }
  return out;
}

}  // namespace medley::shape
