// One question has one answer: the step times of plan, shape and replay's prediction are those of the cost
// model.
#include <gtest/gtest.h>

#include "cost/cost.hpp"
#include "model/zoo.hpp"
#include "plan/export.hpp"
#include "replay/predict.hpp"
#include "shape/step.hpp"

namespace medley {
namespace {

struct Question {
  const char* model;
  int dp, tp, pp;
  plan::Count micro_batch, micro_batches;
  bool compile;
};

plan::Layout layout_of(const Question& q, const plan::Model& model) {
  plan::Layout layout;
  layout.dp = q.dp;
  layout.tp = q.tp;
  layout.pp = q.pp;
  layout.micro_batch = q.micro_batch;
  layout.global_batch = q.micro_batch * q.micro_batches * q.dp;
  layout.flags.compile = q.compile;
  plan::check(layout, model);
  return layout;
}

const std::vector<Question> questions{{"gpt2-xl", 1, 1, 1, 1, 1, false},
                                      {"gpt2-xl", 2, 1, 1, 4, 1, false},
                                      {"llama-3-8b", 1, 2, 1, 1, 2, true},
                                      {"llama-2-7b", 1, 1, 2, 1, 4, false},
                                      {"llama-2-7b", 1, 4, 2, 2, 4, true}};

TEST(OneAnswer, PlanAndShapeAgree) {
  for (const Question& q : questions) {
    const plan::Model model = *plan::model_from_zoo(q.model);
    const plan::Layout layout = layout_of(q, model);
    const cost::StepCost planned =
        cost::Step(model, layout, plan::Framework::textbook, 0).cost(cost::find_machine("dgx-h200"));
    shape::Workload work;
    work.layout = layout;
    shape::check(model, work);
    shape::Pricer pricer(cost::GpuModel::named("h200-sxm"));
    const shape::Step step = shape::step_time(pricer, model, work);
    EXPECT_DOUBLE_EQ(step.step_us, planned.step_us) << q.model;
    EXPECT_DOUBLE_EQ(step.tflops, planned.tflops_per_gpu) << q.model;
  }
}

// Replay runs operations one after another in schedule order. CUDA graphs and a blocking schedule exclude
// what the host and overlapping collectives add. Messages between stages wait for both sides in a replay but
// start at once on a GPU's stream, so pipelines are not compared.
TEST(OneAnswer, PlanAndReplaysPredictionAgree) {
  const cost::Machine machine = cost::find_machine("dgx-h200");
  for (const Question& q : questions) {
    if (q.pp > 1) continue;
    const plan::Model model = *plan::model_from_zoo(q.model);
    plan::Layout layout = layout_of(q, model);
    layout.flags.cuda_graphs = true;
    const cost::Step step(model, layout, plan::Framework::textbook, 0);
    const double planned = step.cost(machine).step_us - machine.constants.step_us;
    nlohmann::json all = {
        {"schema", "medley.schedule/1"}, {"world", layout.world()}, {"ranks", nlohmann::json::array()}};
    for (plan::Count rank = 0; rank < layout.world(); ++rank) {
      const cost::Step own(model, layout, plan::Framework::textbook, rank);
      all["ranks"].push_back(nlohmann::json(plan::schedule_json(own.schedule(), layout, rank, own.entry_us(machine))));
    }
    const replay::WorldSchedule schedule = replay::schedule_from_json(all, "test");
    replay::Places places;
    places.hosts.assign(static_cast<std::size_t>(layout.world()), 0);
    places.machines.assign(static_cast<std::size_t>(layout.world()), 0);
    places.cores.assign(static_cast<std::size_t>(layout.world()), 64);
    const replay::Prediction prediction =
        predict(schedule, places, {.scale = 1, .tflops = 1}, replay::time_on_machine(machine, 1));
    EXPECT_NEAR(prediction.step_us, planned, 1e-6 * planned) << q.model;
  }
}

}  // namespace
}  // namespace medley
