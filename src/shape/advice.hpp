// Which number of a shape to change, to what, the gain and the effect on the parameter count. Every change is
// priced by the model; none comes from a rule. Used by `medley shape` and `medley shape lint`.
#pragma once

#include <string>
#include <vector>

#include "shape/changes.hpp"
#include "shape/step.hpp"

namespace medley::shape {

struct Advice {
  int rule = 0;  ///< which of the seven rules (rules.hpp) it follows; 0: none
  Change change;
  double gain = 0;        ///< tokens per second and GPU, new/old − 1
  double parameters = 0;  ///< parameters, new/old − 1
  std::string why{};      ///< one clause: the cause of the lost time
  /// Gain without the part that merely comes from having fewer parameters.
  double net_gain() const noexcept { return (1 + gain) * (1 + parameters) - 1; }
};

/// How far a change may go, and which gain is worth reporting.
struct AdviceLimits {
  double ffn = 0.03;  ///< relative change of the MLP's width
  double hidden = 0.03;
  double worthwhile = 0.01;  ///< no advice below this net gain
};

/// The best worthwhile change of each number, largest net gain first.
std::vector<Advice> advise(Pricer& pricer, const Model& model, const Workload& work, const AdviceLimits& limits = {});

/// All changes of the model's own numbers (not tp or micro-batch) combined, each kept only if it still helps.
struct CombinedAdvice {
  Model model;
  double gain = 0, parameters = 0;
  double net_gain() const noexcept { return (1 + gain) * (1 + parameters) - 1; }  ///< as Advice's
};
CombinedAdvice apply(Pricer& pricer, const Model& model, const Workload& work, const std::vector<Advice>& advice);

/// The best of `changes` relative to `base`: the nearest of those within half a point of the largest net
/// gain. Skips changes that check() rejects or that exceed the GPU's memory; empty when none is left.
std::vector<Advice> best_of(Pricer& pricer, const Step& base, const Model& model, const Changes& changes);

}  // namespace medley::shape
