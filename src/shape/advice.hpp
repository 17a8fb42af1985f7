// Which number of a shape to change, to what, what it buys and what it does to the parameter count: every
// change is priced again, none is taken from a rule. Used by `medley shape` and `medley shape lint`.
#pragma once

#include <string>
#include <vector>

#include "shape/changes.hpp"
#include "shape/step.hpp"

namespace medley::shape {

struct Advice {
  int rule = 0;  ///< of the seven (rules.hpp) that it follows; 0: none asks for it
  Change change;
  double gain = 0;        ///< tokens per second and GPU, new over old, less one
  double parameters = 0;  ///< parameters, new over old, less one
  std::string why{};      ///< one clause: what the time was lost to
  /// Gain less what merely follows from having fewer parameters.
  double net_gain() const noexcept { return (1 + gain) * (1 + parameters) - 1; }
};

/// How near "near" is, and what is worth saying.
struct Taste {
  double ffn = 0.03;  ///< relative change of the MLP's width
  double hidden = 0.03;
  double worthwhile = 0.01;  ///< net gain below which nothing is advised
};

/// The best change of each number that is worth its while, largest net gain first.
std::vector<Advice> advise(Pricer& pricer, const Model& model, const Workload& work, const Taste& taste = {});

/// All changes of the model's own numbers (not tp or micro-batch) taken together, each kept only if it still
/// helps.
struct Together {
  Model model;
  double gain = 0, parameters = 0;
};
Together apply(Pricer& pricer, const Model& model, const Workload& work, const std::vector<Advice>& advice);

/// The best of `changes` against `base`: the nearest of those within half a point of the largest net gain.
/// Changes that check() refuses or that do not fit the GPU's memory are passed over; empty when none is left.
std::vector<Advice> best_of(Pricer& pricer, const Step& base, const Model& model, const Changes& changes);

}  // namespace medley::shape
