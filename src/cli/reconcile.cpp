// medley reconcile: compares a plan with what a run sent, and explains every difference.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/ranks_text.hpp"
#include "cli/command.hpp"
#include "cli/plan.hpp"
#include "cli/reconcile_time.hpp"
#include "cli/table.hpp"
#include "reconcile/report_json.hpp"

namespace medley::cli {
namespace {

struct ReconcileArguments {
  PlanRequest plan;
  reconcile::ReconcileRequest request;
  std::vector<std::string> ignored;
  std::string json;
  bool check = false, explained = false, all_rows = false;
};

reconcile::ReconcileRequest request_of(const ReconcileArguments& given) {
  reconcile::ReconcileRequest request = given.request;
  for (const std::string& word : given.ignored) reconcile::ignore(word, request.options);
  if (request.schedule.empty() && !given.plan.model.empty())
    request.plan = reconcile::Plan{model_of(given.plan), layout_of(given.plan), framework_of(given.plan)};
  return request;
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
    if (field == trace::Field::root) out += fmt::format(" {} {}", is_collective(kind.op) ? "root" : "peer", kind.root);
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
    if (!line.differs()) last = fmt::format("{}", fmt::join(report.catalog.reasons(number), "; "));
    else if (last.empty()) last = line.detail.empty() ? "no known cause" : line.detail + "; no known cause";
    table.add({std::string(name(line.verdict)), std::string(name(kind.op)), report.catalog.group_of(kind).name,
               side_text(report, line, true), side_text(report, line, false), last});
  }
  if (any) fmt::print("{}\n", table.str());
}

/// Ranks whose steps differ alike are shown once.
void print_ranks(const reconcile::Report& report, bool all_rows) {
  for (const auto& [ranks, first] : reconcile::alike_ranks(report, all_rows)) {
    for (const reconcile::StepsResult& steps : first->results) {
      const auto differing =
          std::count_if(steps.lines.begin(), steps.lines.end(), [](const auto& line) { return line.differs(); });
      fmt::print("{}, step{} {}: {} rows matched, {} differences\n", core::ranks_text(ranks),
                 steps.steps.size() == 1 ? "" : "s", steps_text(steps.steps),
                 steps.lines.size() - static_cast<std::size_t>(differing), differing);
      print_steps(report, steps, all_rows);
    }
  }
}

void print_report(const trace::Trace& t, const reconcile::Report& report, bool all_rows) {
  for (const auto& remark : t.remarks) fmt::print("note: {}\n", remark);
  for (const std::string& note : report.notes) fmt::print("note: {}\n", note);
  for (const reconcile::Finding& finding : report.findings) fmt::print("{}: {}\n", finding.kind, finding.sentence);
  print_ranks(report, all_rows);
  for (const reconcile::Explanation& e : report.explanations)
    fmt::print("hypothesis: {}\n  it has {} free parameter{}, predicts {} rows, and all of them match to the byte\n",
               e.sentence, e.parameters, e.parameters == 1 ? "" : "s", e.predicted);
  for (const reconcile::Explanation& e : report.suggestions)
    fmt::print(
        "perhaps: {}\n  it would explain everything, but predicts {} row{}: too little to count as the "
        "cause\n",
        e.sentence, e.predicted, e.predicted == 1 ? "" : "s");
  fmt::print("{} differences on {} rank{}, {} without a known cause\n", report.differences(), report.ranks.size(),
             report.ranks.size() == 1 ? "" : "s", report.unexplained());
}

int run_reconcile(const ReconcileArguments& given) {
  const reconcile::ReconcileResult result = reconcile::run_reconcile(request_of(given));
  const reconcile::Report& report = result.report;
  write_json(given.json, reconcile::to_json(result));
  if (given.json != "-") {
    print_report(result.trace, report, given.all_rows);
    if (result.time) print_times(*result.time, given.all_rows);
  }
  if (!given.check && !given.explained) return 0;
  return (given.explained ? report.unexplained() : report.differences()) > 0 ? 1 : 0;
}

}  // namespace

void add_reconcile(CLI::App& app) {
  auto given = std::make_shared<ReconcileArguments>();
  CLI::App* command =
      add_command(app, "reconcile", "What was planned beside what a run sent, every difference with its cause",
                  "medley reconcile out/run7 --model pythia-2.8b --layout dp=4,tp=2,zero=1 --framework deepspeed\n"
                  "  medley reconcile out/run7 --schedule step.json --assert\n"
                  "  medley reconcile out/run7 --schedule step.json --machine dgx-h100",
                  [given] { return run_reconcile(*given); });
  command->add_option("TRACE", given->request.trace, "What `medley trace` reads")->required();
  add_plan_options(*command, given->plan);
  names_file(command->add_option("--schedule", given->request.schedule,
                                 "Instead of a model: a schedule that medley plan --schedule wrote"));
  command->add_option("--scale", given->request.scale, "Sizes of the schedule times this, as medley replay --scale")
      ->check(between(1e-9, 1e3));
  command->add_option("--machine", given->request.machine,
                      "Compare times, too: with those on this machine's links (a name or a file, as for medley plan)");
  names_file(
      command->add_option("--table", given->request.table,
                          "Compare times, too: with those of the routes that medley tune measured on this machine"));
  command->add_option("--rank", given->request.options.selection.rank, "One rank alone; default: every rank traced")
      ->check(whole(0, 1 << 30));
  command
      ->add_option("--steps", given->request.options.selection.steps,
                   "Steps in the trace; default: found by scope or period")
      ->check(positive());
  command
      ->add_option("--step", given->request.options.selection.step,
                   "Compare only this step, from 1 on; default: every step. For routing that differs from "
                   "step to step")
      ->check(positive());
  command
      ->add_option("--skip", given->request.options.selection.skip,
                   "Leave out the first steps: a warm-up that sends something else")
      ->check(whole(0, 1 << 30));
  command
      ->add_option("--ignore", given->ignored,
                   "Compare without this: group, bytes, dtype, reduce, root, phase, async, order, rounding (sizes "
                   "that the source rounds); ranks (without a trace), outside (operations outside the steps)")
      ->delimiter(',');
  command->add_flag("--assert", given->check, "Exit with 1 when anything differs or is unknown: a check for CI");
  command->add_flag("--allow-explained", given->explained, "Exit with 1 only when a difference has no known cause");
  command->add_flag("--all-rows", given->all_rows, "Show what matched too");
  add_json(*command, given->json, "the comparison");
}

}  // namespace medley::cli
