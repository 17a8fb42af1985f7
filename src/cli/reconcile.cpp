// medley reconcile: what was planned beside what a run sent, every difference with its likely cause.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <medley/error.hpp>

#include "cli/command.hpp"
#include "cli/plan.hpp"
#include "cli/table.hpp"
#include "model/read_layout.hpp"
#include "reconcile/causes.hpp"

namespace medley::cli {
namespace {

struct ReconcileArguments {
  PlanRequest plan;
  std::string path, schedule, json;
  int rank = -1;
  std::size_t steps = 0, step = 0;
  double scale = 1;
  bool check = false, explained = false, all_rows = false;
};

/// Where the expected side comes from: a plan, or the file of a schedule.
class Expectation {
 public:
  Expectation(const ReconcileArguments& given, int world) : scale_(given.scale), world_(world) {
    if (!given.schedule.empty()) {
      schedule_ = replay::read_schedule(given.schedule);
      return;
    }
    if (given.plan.model.empty())
      throw Error(ErrorKind::invalid,
                  "--model and --layout, or --schedule, say what was expected; none is given");
    plan_ =
        reconcile::Plan{plan::read_model(given.plan.model), layout_of(given.plan), framework_of(given.plan)};
    plan::check(plan_->layout, plan_->model);
    if (world > 0 && plan_->layout.world() != world) {
      throw Error(ErrorKind::invalid,
                  fmt::format("--layout has {} ranks, the trace is of {}", plan_->layout.world(), world));
    }
  }
  reconcile::Items items(int rank) const {
    if (schedule_) return reconcile::expected_items(schedule_->of(rank, world_), scale_);
    return reconcile::expected_items(plan::make_schedule(plan_->model, plan_->layout, plan_->framework, rank),
                                     plan_->layout, rank);
  }
  const std::optional<reconcile::Plan>& plan() const { return plan_; }

 private:
  std::optional<replay::WorldSchedule> schedule_;
  std::optional<reconcile::Plan> plan_;
  double scale_;
  int world_;
};

struct RankResult {
  reconcile::Result result;
  trace::Summary summary;
};

RankResult reconcile_rank(const trace::Trace& t, const trace::RankTrace& rank, const Expectation& expectation,
                          const ReconcileArguments& given) {
  RankResult out;
  out.summary = trace::summarise(t, rank, trace::find_steps(t, rank, given.steps), given.step);
  const reconcile::Items observed = reconcile::observed_items(t, out.summary);
  out.result = reconcile::compare(expectation.items(rank.rank), observed, rank.rank);
  reconcile::explain(out.result, expectation.plan(), observed);
  return out;
}

nlohmann::ordered_json item_json(const reconcile::Item& item) {
  return {{"bytes", item.bytes}, {"count", item.count}, {"dtype", name(item.dtype)}, {"why", item.why}};
}

nlohmann::ordered_json json_of(const RankResult& r) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const reconcile::Line& line : r.result.lines) {
    const reconcile::Item& item = line.expected.count > 0 ? line.expected : line.observed;
    nlohmann::ordered_json row = {{"verdict", name(line.verdict)},
                                  {"op", name(item.op)},
                                  {"group", item.group},
                                  {"group_size", item.ranks.size()},
                                  {"ranks", item.ranks}};
    if (line.expected.count > 0) row["expected"] = item_json(line.expected);
    if (line.observed.count > 0) row["observed"] = item_json(line.observed);
    if (line.verdict != reconcile::Verdict::matched) row["cause"] = line.cause;
    rows.push_back(std::move(row));
  }
  return {{"rank", r.result.rank},
          {"steps", r.summary.steps.steps.size()},
          {"steps_unlike", r.summary.unlike},
          {"matched", r.result.lines.size() - r.result.differences()},
          {"differences", r.result.differences()},
          {"unexplained", r.result.unexplained()},
          {"rows", rows}};
}

void print_rank(const RankResult& r, bool all_rows) {
  const reconcile::Result& result = r.result;
  const std::size_t matched = result.lines.size() - result.differences();
  fmt::print("rank {}: {} step{}, {} rows matched, {} differences\n", result.rank,
             r.summary.steps.steps.size(), r.summary.steps.steps.size() == 1 ? "" : "s", matched,
             result.differences());
  if (r.summary.unlike > 0)
    fmt::print("note: not all steps sent the same; step {} is compared\n", r.summary.typical + 1);
  if (result.differences() == 0 && !all_rows) return;
  Table table({"", "op", "group", "expected", "observed", "cause"});
  const auto text = [](const reconcile::Item& item) {
    return item.count > 0 ? fmt::format("{} × {} B", item.count, item.bytes) : std::string("-");
  };
  for (const reconcile::Line& line : result.lines) {
    const bool matches = line.verdict == reconcile::Verdict::matched;
    if (matches && !all_rows) continue;
    const reconcile::Item& item = line.expected.count > 0 ? line.expected : line.observed;
    table.add({std::string(name(line.verdict)), std::string(name(item.op)), item.group, text(line.expected),
               text(line.observed),
               matches              ? fmt::format("{}", fmt::join(line.expected.why, "; "))
               : line.cause.empty() ? "no known cause"
                                    : line.cause});
  }
  fmt::print("{}\n", table.str());
}

int run_reconcile(const ReconcileArguments& given) {
  const trace::Trace t = trace::open_trace(given.path);
  const Expectation expectation(given, t.world);
  std::vector<RankResult> results;
  for (const trace::RankTrace& rank : t.ranks) {
    if (given.rank < 0 || rank.rank == given.rank)
      results.push_back(reconcile_rank(t, rank, expectation, given));
  }
  if (results.empty()) static_cast<void>(t.rank(given.rank));  // refuses it
  std::size_t differences = 0, unexplained = 0;
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  for (const RankResult& r : results) {
    differences += r.result.differences();
    unexplained += r.result.unexplained();
    ranks.push_back(json_of(r));
  }
  write_json(given.json, {{"source", t.source},
                          {"format", t.format},
                          {"differences", differences},
                          {"unexplained", unexplained},
                          {"ranks", ranks}});
  if (given.json != "-") {
    for (const auto& remark : t.remarks) fmt::print("note: {}\n", remark);
    for (const RankResult& r : results) print_rank(r, given.all_rows);
    fmt::print("{} differences on {} rank{}, {} without a known cause\n", differences, results.size(),
               results.size() == 1 ? "" : "s", unexplained);
  }
  if (!given.check) return 0;
  return (given.explained ? unexplained : differences) > 0 ? 1 : 0;
}

}  // namespace

void add_reconcile(CLI::App& app) {
  auto given = std::make_shared<ReconcileArguments>();
  CLI::App* command = add_command(
      app, "reconcile", "What was planned beside what a run sent, every difference with its cause",
      "medley reconcile out/run7 --model pythia-2.8b --layout dp=4,tp=2,zero=1 --framework deepspeed\n"
      "  medley reconcile out/run7 --schedule step.json --assert",
      [given] { return run_reconcile(*given); });
  command->add_option("TRACE", given->path, "What `medley trace` reads")->required();
  command->add_option("--model", given->plan.model, "As for medley plan");
  command->add_option("--layout", given->plan.layout, "As for medley plan");
  command
      ->add_option("--framework", given->plan.framework, "textbook, megatron, deepspeed, neox, ddp or fsdp2")
      ->capture_default_str();
  command->add_option("--micro-batch", given->plan.micro_batch, "Samples per forward pass")
      ->check(CLI::PositiveNumber);
  command->add_option("--global-batch", given->plan.global_batch, "Samples per step over all ranks")
      ->check(CLI::PositiveNumber);
  command->add_option("--seq", given->plan.seq, "Tokens per sample; default: the model's")
      ->check(CLI::PositiveNumber);
  command->add_option("--dtype", given->plan.dtype, "bf16, f16 or f32");
  command->add_option("--schedule", given->schedule,
                      "Instead of a model: the schedule that medley plan --schedule wrote");
  command->add_option("--scale", given->scale, "Sizes of the schedule times this, as medley replay --scale")
      ->check(CLI::Range(1e-9, 1e3));
  command->add_option("--rank", given->rank, "One rank alone; default: every rank traced")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--steps", given->steps, "Steps in the trace; default: found by scope or period")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--step", given->step,
                   "Compare this step, from 1 on; default: the one most others are like. For routing that "
                   "differs from step to step")
      ->check(CLI::PositiveNumber);
  command->add_flag("--assert", given->check, "Exit with 1 when anything differs: a check for CI");
  command->add_flag("--allow-explained", given->explained,
                    "With --assert: differences with a known cause pass");
  command->add_flag("--all-rows", given->all_rows, "Show what matched too");
  command->add_option("--json", given->json, "Write the comparison as JSON; - for stdout");
}

}  // namespace medley::cli
