// medley plan: what one training step of a model sends, as each framework issues it.
#include "cli/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <medley/error.hpp>

#include "cli/command.hpp"
#include "cli/terminal.hpp"
#include "model/text.hpp"

namespace medley::cli {
namespace {

struct PlanOptions : PlanRequest {
  std::string rank_text, against, schedule_file, json;
  std::vector<std::string> sweeps;
  bool all_rows = false, force = false;
};

int run_sweep(const PlanOptions& options) {
  cost::SweepRequest request{options, {}};
  for (const std::string& text : options.sweeps) request.axes.push_back(cost::parse_axis(text));
  ProgressBar bar;
  request.progress = bar.counting("plans");
  const cost::SweepResult result = cost::sweep_plans(request);
  bar.clear();
  write_json(options.json, to_json(result));
  if (options.json != "-") print_sweep(result);
  return 0;
}

int run_against(const PlanOptions& options) {
  plan::AgainstRequest request{options, 0, options.against};
  if (!options.rank_text.empty()) request.rank = plan::parse_count(options.rank_text, "--rank", "rank");
  const plan::AgainstResult result = plan::compare_with_list(request);
  write_json(options.json, to_json(result));
  if (options.json != "-") print_against(result);
  return result.comparison.explained() ? 0 : 1;
}

int run_plan(const PlanOptions& options) {
  if (options.json == "-" && options.schedule_file == "-")
    throw Error(ErrorKind::invalid, "--json and --schedule cannot both be '-'");
  if (!options.sweeps.empty()) return run_sweep(options);
  if (!options.against.empty()) return run_against(options);
  PlanRequest request = options;
  const bool all_ranks = options.rank_text == "all";
  if (!options.rank_text.empty() && !all_ranks) request.rank = plan::parse_count(options.rank_text, "--rank", "rank");
  const cost::PlanResult plan = cost::make_plan(request);
  if (!options.schedule_file.empty())
    write_json(options.schedule_file, all_ranks ? cost::all_schedules_json(plan) : cost::schedule_json(request, plan));
  write_json(options.json, to_json(plan));
  if (options.json != "-" && options.schedule_file != "-") print_plan(plan, options.all_rows);
  if (plan.fits() || options.force) return 0;
  fmt::print(stderr, "medley: {}\n", cost::misfit_text(plan));
  return 1;
}

}  // namespace

void add_plan_options(CLI::App& command, PlanRequest& request) {
  command.add_option("--model", request.model,
                     "A known model, a file (HF config.json, NeoX yml, Megatron arguments) or "
                     "h=…,a=…,layers=…,vocab=…,seq=…");
  add_as(command, request.as);
  command.add_option("--layout", request.layout,
                     "Layout: dp=8,tp=4,pp=2,sp=on,zero=1,…, or a ds_config.json, NeoX yml or Megatron arguments, or "
                     "both: FILE,dp=8");
  command
      .add_option("--framework", request.framework,
                  "Framework: textbook, megatron, deepspeed, neox, ddp, fsdp1, fsdp2 or nanotron")
      ->capture_default_str();
  command.add_option("--micro-batch", request.micro_batch, "Samples per forward pass")->check(positive());
  command.add_option("--global-batch", request.global_batch, "Samples per step over all ranks")->check(positive());
  command.add_option("--seq", request.seq, "Tokens per sample; default: the model's")->check(positive());
  command.add_option("--dtype", request.dtype, "Element type: bf16, f16 or f32");
}

void add_machine(CLI::App& command, PlanRequest& request, const std::string& what) {
  command.add_option("--machine", request.machine,
                     fmt::format("{}: a TOML file or {}", what, fmt::join(cost::machine_names(), ", ")));
}

void add_tokens(CLI::App& command, PlanRequest& request) {
  command.add_option_function<std::string>(
      "--tokens", [&request](const std::string& text) { request.tokens = cost::parse_tokens(text, "--tokens"); },
      "Also say how many days and GPU-hours training on so many tokens takes, such as 300B or 1.5T (powers of 1000); "
      "needs --machine");
}

void add_plan(CLI::App& app) {
  auto request = std::make_shared<PlanOptions>();
  CLI::App* command =
      add_command(app, "plan", "What one training step of a model sends, as each framework issues it",
                  "medley plan --model gpt3-175b --layout dp=16,tp=8,pp=8,sp=on --framework megatron \\\n"
                  "      --micro-batch 1 --global-batch 1536\n"
                  "  medley plan --model pythia-2.8b --layout dp=8 --framework ddp --sweep seq=512:32768 --json -\n"
                  "  medley plan --model gpt3-175b --layout dp=16,tp=8,pp=8,sp=on,recompute=selective \\\n"
                  "      --framework megatron --micro-batch 1 --global-batch 1536 --machine dgx-a100 --tokens 300B\n"
                  "  medley plan search --help      the fastest layouts of a number of GPUs",
                  nullptr);
  add_plan_calibrate(*command);
  add_plan_search(*command);
  command->callback([request, command] {
    if (command->get_subcommands().empty()) exit_with(run_plan(*request));
  });
  add_plan_options(*command, *request);
  add_machine(*command, *request, "Also say how long the step takes on this machine");
  add_tokens(*command, *request);
  command->add_flag("--force", request->force, "Exit 0 also when the layout does not fit the GPU's memory");
  command->add_option("--rank", request->rank_text, "Rank to plan; default: the busiest; with --schedule also: all");
  command->add_option("--small", request->small, "Messages up to this size count as small")
      ->transform(CLI::AsSizeValue(false).description(""))
      ->type_name("SIZE")
      ->capture_default_str();
  command
      ->add_option(
          "--sweep", request->sweeps,
          "Axis of a sweep: KEY=A:B (doubling), KEY=A:B:STEP or KEY=A,B,C; several make a grid. Keys: layout keys, "
          "hidden, layers, …, model")
      ->allow_extra_args(false);
  command->add_option(
      "--against", request->against,
      "Compare the plan with an AICB workload (csv) and explain every difference; exit 1 if one has no cause");
  add_json(*command, request->json, "the plan");
  names_file(command->add_option("--schedule", request->schedule_file,
                                 "Write every operation in order to FILE; - for stdout"));
  command->add_flag("--all-rows", request->all_rows, "Show every row, also where many differ in size only");
}

}  // namespace medley::cli
