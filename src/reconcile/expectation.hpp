// The expected side: what a plan or a schedule file says each rank issues in one step.
#pragma once

#include <optional>
#include <string>

#include "plan/framework.hpp"
#include "reconcile/kinds.hpp"
#include "replay/schedule_file.hpp"

namespace medley::reconcile {

/// What was planned.
struct Plan {
  plan::Model model;
  plan::Layout layout;  ///< checked
  plan::Framework framework = plan::Framework::textbook;
};

class Expectation {
 public:
  explicit Expectation(Plan plan);
  /// `scale` as of medley replay; `world` for schedules that fit any number of ranks.
  Expectation(replay::WorldSchedule schedule, double scale, int world);

  int world() const { return world_; }
  const std::optional<Plan>& plan() const { return plan_; }
  Sequence of(int rank, Catalog& catalog, Fields ignored) const;
  /// The same, with the layer of the model that each entry of the sequence belongs to; -1: outside the layers, or not
  /// known.
  struct Step {
    Sequence sequence;
    std::vector<std::int64_t> layers;
  };
  Step step_of(int rank, Catalog& catalog, Fields ignored) const;

 private:
  std::optional<Plan> plan_;
  replay::WorldSchedule schedule_;
  double scale_ = 1;
  int world_ = 0;
};

/// The sequence of one rank's step of a plan. Throws Error(invalid) where the framework cannot run the layout.
Sequence expected_step(const Plan& plan, int rank, Catalog& catalog, Fields ignored);

}  // namespace medley::reconcile
