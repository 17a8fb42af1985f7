// medley reconcile: what was planned beside what a run sent, every difference with its likely cause.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <medley/error.hpp>

#include "base/ranks_text.hpp"
#include "cli/command.hpp"
#include "cli/plan.hpp"
#include "cli/table.hpp"
#include "model/read_layout.hpp"
#include "reconcile/report_json.hpp"

namespace medley::cli {
namespace {

struct ReconcileArguments {
  PlanRequest plan;
  std::string path, schedule, json;
  int rank = -1;
  std::vector<std::string> ignored;
  std::size_t steps = 0, step = 0, skip = 0;
  double scale = 1;
  bool check = false, explained = false, all_rows = false;
};

reconcile::Expectation expectation_of(const ReconcileArguments& given, int world) {
  if (!given.schedule.empty()) return {replay::read_schedule(given.schedule), given.scale, world};
  if (given.plan.model.empty())
    throw Error(ErrorKind::invalid,
                "--model and --layout, or --schedule, say what was expected; none is given");
  reconcile::Plan plan{model_of(given.plan), layout_of(given.plan), framework_of(given.plan)};
  plan::check(plan.layout, plan.model);
  if (world > 0 && plan.layout.world() != world)
    throw Error(ErrorKind::invalid,
                fmt::format("--layout has {} ranks, the trace is of {}", plan.layout.world(), world));
  return reconcile::Expectation(std::move(plan));
}

reconcile::Options options_of(const ReconcileArguments& given) {
  reconcile::Options options;
  options.selection = {given.rank, given.steps, given.step, given.skip};
  for (const std::string& word : given.ignored) {
    if (word == "ranks") {
      options.ignore_ranks = true;
    } else if (word == "outside") {
      options.ignore_outside = true;
    } else if (const auto field = trace::parse_field(word)) {
      options.ignored.add(*field);
    } else {
      throw Error(
          ErrorKind::invalid,
          fmt::format("--ignore {}: it must be one of group, bytes, dtype, reduce, root, phase, async, "
                      "order, rounding, ranks, outside",
                      word));
    }
  }
  return options;
}

/// "1 to 3, 7".
std::string steps_text(const std::vector<std::size_t>& steps) {
  std::string out;
  for (std::size_t i = 0; i < steps.size();) {
    std::size_t end = i + 1;
    while (end < steps.size() && steps[end] == steps[end - 1] + 1) ++end;
    out += fmt::format("{}{}", out.empty() ? "" : ", ", steps[i]);
    if (end - i > 1) out += fmt::format(" to {}", steps[end - 1]);
    i = end;
  }
  return out;
}

std::string side_text(const reconcile::Report& report, const reconcile::Line& line, bool expected) {
  const std::int64_t count = expected ? line.expected_count : line.observed_count;
  if (count == 0) return "-";
  const reconcile::Kind& kind = report.catalog[expected ? line.expected : line.observed];
  std::string out = fmt::format("{} × {} B", count, kind.bytes);
  for (const trace::Field field : line.fields) {
    if (field == trace::Field::dtype) out += fmt::format(" {}", name(kind.dtype));
    if (field == trace::Field::reduce) out += fmt::format(" {}", name(kind.reduce));
    if (field == trace::Field::root)
      out += fmt::format(" {} {}", is_collective(kind.op) ? "root" : "peer", kind.root);
    if (field == trace::Field::phase) out += fmt::format(" {}", reconcile::phase_name(kind.phase));
    if (field == trace::Field::async) out += kind.async ? " async" : " blocking";
  }
  return out;
}

void print_steps(const reconcile::Report& report, const reconcile::StepsResult& steps, bool all_rows) {
  Table table({"", "op", "group", "expected", "observed", "cause"});
  bool any = false;
  for (const reconcile::Line& line : steps.lines) {
    if (!line.differs() && !all_rows) continue;
    any = true;
    const std::uint32_t number = line.expected_count > 0 ? line.expected : line.observed;
    const reconcile::Kind& kind = report.catalog[number];
    std::string last = line.cause;
    if (!line.differs())
      last = fmt::format("{}", fmt::join(report.catalog.reasons(number), "; "));
    else if (last.empty())
      last = line.detail.empty() ? "no known cause" : line.detail + "; no known cause";
    table.add({std::string(name(line.verdict)), std::string(name(kind.op)),
               report.catalog.group_of(kind).name, side_text(report, line, true),
               side_text(report, line, false), last});
  }
  if (any) fmt::print("{}\n", table.str());
}

/// Whether two ranks differ from their plans in the same way.
bool alike(const reconcile::RankResult& a, const reconcile::RankResult& b, bool all_rows) {
  const auto shown = [&](const reconcile::StepsResult& steps) {
    std::vector<reconcile::Line> lines = steps.lines;
    if (!all_rows) std::erase_if(lines, [](const auto& line) { return !line.differs(); });
    return lines;
  };
  return a.steps == b.steps && a.results.size() == b.results.size() &&
         std::equal(a.results.begin(), a.results.end(), b.results.begin(), [&](const auto& x, const auto& y) {
           return x.steps == y.steps && x.lines.size() == y.lines.size() && shown(x) == shown(y);
         });
}

/// Ranks whose steps differ alike are shown once.
void print_ranks(const reconcile::Report& report, bool all_rows) {
  std::vector<bool> shown(report.ranks.size(), false);
  for (std::size_t r = 0; r < report.ranks.size(); ++r) {
    if (shown[r]) continue;
    const reconcile::RankResult& rank = report.ranks[r];
    std::vector<int> ranks;
    for (std::size_t o = r; o < report.ranks.size(); ++o) {
      if (shown[o] || !alike(rank, report.ranks[o], all_rows)) continue;
      shown[o] = true;
      ranks.push_back(report.ranks[o].rank);
    }
    for (const reconcile::StepsResult& steps : rank.results) {
      const auto differing = std::count_if(steps.lines.begin(), steps.lines.end(),
                                           [](const auto& line) { return line.differs(); });
      fmt::print("{}, step{} {}: {} rows matched, {} differences\n", core::ranks_text(ranks),
                 steps.steps.size() == 1 ? "" : "s", steps_text(steps.steps),
                 steps.lines.size() - static_cast<std::size_t>(differing), differing);
      print_steps(report, steps, all_rows);
    }
  }
}

void print_report(const trace::Trace& t, const reconcile::Report& report, bool all_rows) {
  for (const auto& remark : t.remarks) fmt::print("note: {}\n", remark);
  for (const reconcile::Finding& finding : report.findings)
    fmt::print("{}: {}\n", finding.kind, finding.sentence);
  print_ranks(report, all_rows);
  for (const reconcile::Explanation& e : report.explanations)
    fmt::print(
        "hypothesis: {}\n  it has {} free parameter{}, predicts {} rows, and all of them match to the byte\n",
        e.sentence, e.parameters, e.parameters == 1 ? "" : "s", e.predicted);
  for (const reconcile::Explanation& e : report.suggestions)
    fmt::print(
        "perhaps: {}\n  it would explain everything, but predicts {} row{}: too little to count as the "
        "cause\n",
        e.sentence, e.predicted, e.predicted == 1 ? "" : "s");
  fmt::print("{} differences on {} rank{}, {} without a known cause\n", report.differences(),
             report.ranks.size(), report.ranks.size() == 1 ? "" : "s", report.unexplained());
}

int run_reconcile(const ReconcileArguments& given) {
  const trace::Trace t = trace::open_trace(given.path);
  if (given.rank >= 0) static_cast<void>(t.rank(given.rank));  // refuses one that is not there
  const reconcile::Report report = reconcile::reconcile(t, expectation_of(given, t.world), options_of(given));
  write_json(given.json, reconcile::to_json(report, t));
  if (given.json != "-") print_report(t, report, given.all_rows);
  if (!given.check && !given.explained) return 0;
  return (given.explained ? report.unexplained() : report.differences()) > 0 ? 1 : 0;
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
  add_as(*command, given->plan.as);
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
                   "Compare only this step, from 1 on; default: every step. For routing that differs from "
                   "step to step")
      ->check(CLI::PositiveNumber);
  command->add_option("--skip", given->skip, "Leave out the first steps: a warm-up that sends something else")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option(
          "--ignore", given->ignored,
          "Compare without this: group, bytes, dtype, reduce, root, phase, async, order, rounding (sizes "
          "that the source rounds); ranks (without a trace), outside (operations outside the steps)")
      ->delimiter(',');
  command->add_flag("--assert", given->check,
                    "Exit with 1 when anything differs or is unknown: a check for CI");
  command->add_flag("--allow-explained", given->explained,
                    "Exit with 1 only when a difference has no known cause");
  command->add_flag("--all-rows", given->all_rows, "Show what matched too");
  command->add_option("--json", given->json, "Write the comparison as JSON; - for stdout");
}

}  // namespace medley::cli
