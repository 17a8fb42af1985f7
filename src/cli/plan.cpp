// medley plan: what one training step of a model sends, as each framework issues it.
#include "cli/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <medley/error.hpp>

#include "cli/command.hpp"
#include "model/read_layout.hpp"

namespace medley::cli {

using plan::Count;

plan::Framework framework_of(const PlanRequest& request) {
  if (const auto framework = plan::parse_framework(request.framework)) return *framework;
  throw Error(ErrorKind::invalid, fmt::format("--framework '{}' is not known; it must be textbook, megatron, "
                                              "deepspeed, neox, ddp, fsdp1, fsdp2 or "
                                              "nanotron",
                                              request.framework));
}

plan::Model model_of(const PlanRequest& request) {
  return plan::read_model(request.model, request.as);
}

plan::Layout layout_of(const PlanRequest& request) {
  plan::Layout layout = plan::read_layout(request.layout);
  const auto set = [&](const char* key, Count value) {
    if (value != 0 && !plan::set_layout_key(layout, key, std::to_string(value), fmt::format("--{}", key)))
      throw Error(ErrorKind::invalid, key);
  };
  set("micro_batch", request.micro_batch);
  set("global_batch", request.global_batch);
  set("seq", request.seq);
  if (!request.dtype.empty()) plan::set_layout_key(layout, "dtype", request.dtype, "--dtype");
  return layout;
}

std::optional<cost::Machine> machine_of(const PlanRequest& request) {
  if (request.machine.empty()) return std::nullopt;
  return cost::find_machine(request.machine);
}

PlanOutcome make_plan(const plan::Model& model, plan::Layout layout, plan::Framework framework, Count rank,
                      const std::optional<cost::Machine>& machine) {
  plan::check(layout, model);
  PlanOutcome out;
  out.rank = rank < 0 ? plan::busiest_rank(model, layout, framework) : rank;
  if (machine) {
    cost::Step step(model, layout, framework, out.rank);
    out.time = step.cost(*machine);
    out.machine = machine;
    out.schedule = std::move(step).schedule();
  } else {
    out.schedule = plan::make_schedule(model, layout, framework, out.rank);
  }
  out.rows = plan::rows_of(out.schedule);
  out.fullest = cost::fullest_gpu(model, layout, framework);
  out.memory = rank < 0 ? out.fullest.memory : cost::memory_per_gpu(model, layout, framework, out.rank);
  out.model = model;
  out.layout = layout;
  out.framework = framework;
  return out;
}

namespace {

Count rank_of(const PlanRequest& request) {
  return request.rank.empty() || request.rank == "all" ? -1
                                                       : plan::parse_count(request.rank, "--rank", "rank");
}

// What was asked for, so that replay can plan the other ranks again.
nlohmann::ordered_json request_json(const PlanRequest& request) {
  const auto number = [](Count value) { return value == 0 ? std::string{} : std::to_string(value); };
  return {{"model", request.model},
          {"as", request.as},
          {"layout", request.layout},
          {"framework", request.framework},
          {"micro_batch", number(request.micro_batch)},
          {"global_batch", number(request.global_batch)},
          {"seq", number(request.seq)},
          {"dtype", request.dtype},
          {"machine", request.machine}};
}

// One rank's schedule, or with --rank all an array of all of them: what replay needs to run a world.
void write_schedule(const PlanRequest& request, const PlanOutcome& outcome) {
  if (request.schedule_file.empty()) return;
  if (outcome.layout.world() > (Count{1} << 20)) {
    throw Error(ErrorKind::invalid,
                fmt::format("--schedule lists the ranks of every group; a world of {} is more than 2^20",
                            outcome.layout.world()));
  }
  if (request.rank != "all") {
    std::vector<double> us;
    if (outcome.machine)
      us = cost::Step(outcome.model, outcome.layout, outcome.framework, outcome.rank)
               .entry_us(*outcome.machine);
    auto one = plan::schedule_json(outcome.schedule, outcome.layout, outcome.rank, us);
    one["plan"] = request_json(request);
    write_json(request.schedule_file, one);
    return;
  }
  if (outcome.layout.world() > 1024) {
    throw Error(ErrorKind::invalid,
                fmt::format("--rank all writes a schedule for each of {} ranks; at most 1024 are written",
                            outcome.layout.world()));
  }
  nlohmann::ordered_json all = {{"schema", "medley.schedule/1"},
                                {"world", outcome.layout.world()},
                                {"ranks", nlohmann::ordered_json::array()}};
  for (Count rank = 0; rank < outcome.layout.world(); ++rank) {
    const cost::Step step(outcome.model, outcome.layout, outcome.framework, rank);
    std::vector<double> us;
    if (outcome.machine) us = step.entry_us(*outcome.machine);
    all["ranks"].push_back(plan::schedule_json(step.schedule(), outcome.layout, rank, us));
  }
  write_json(request.schedule_file, all);
}

// Beside what a framework issues stands what the textbook says; the difference is the framework's doing.
void add_textbook(PlanOutcome& outcome) {
  if (outcome.framework == plan::Framework::textbook) return;
  plan::Layout layout = outcome.layout;
  if (outcome.framework == plan::Framework::fsdp2) layout.zero = 3;
  const auto rows =
      plan::rows_of(plan::make_schedule(outcome.model, layout, plan::Framework::textbook, outcome.rank));
  for (const auto& [group, total] : plan::totals_by_group(rows))
    outcome.textbook[std::string(group)] = total.wire_bytes;
}

int run_plan(const PlanRequest& request) {
  if (request.model.empty()) {
    throw Error(ErrorKind::invalid, "--model is required: a known model, a file or h=…,a=…,layers=…");
  }
  if (request.json == "-" && request.schedule_file == "-")
    throw Error(ErrorKind::invalid, "--json and --schedule cannot both be '-'");
  if (!request.sweeps.empty()) return run_sweep(request);
  if (!request.against.empty()) return run_against(request);
  if (rank_of(request) < -1 || (rank_of(request) == -1 && !request.rank.empty() && request.rank != "all")) {
    throw Error(ErrorKind::invalid, fmt::format("--rank is {}; ranks start at 0", request.rank));
  }
  PlanOutcome outcome = make_plan(model_of(request), layout_of(request), framework_of(request),
                                  rank_of(request), machine_of(request));
  add_textbook(outcome);
  write_schedule(request, outcome);
  write_json(request.json, plan_json(outcome, request.small));
  if (request.json != "-" && request.schedule_file != "-") print_plan(outcome, request);
  if (!outcome.machine || outcome.fits() || request.force) return 0;
  fmt::print(stderr, "medley: {}\n", misfit_text(outcome));
  return 1;
}

}  // namespace

void add_plan(CLI::App& app) {
  auto request = std::make_shared<PlanRequest>();
  CLI::App* command = add_command(
      app, "plan", "What one training step of a model sends, as each framework issues it",
      "medley plan --model gpt3-175b --layout dp=16,tp=8,pp=8,sp=on --framework megatron \\\n"
      "      --micro-batch 1 --global-batch 1536\n"
      "  medley plan --model pythia-2.8b --layout dp=8 --framework ddp --sweep seq=512:32768 --json -\n"
      "  medley plan --model gpt3-175b --layout dp=16,tp=8,pp=8,sp=on,recompute=selective \\\n"
      "      --framework megatron --micro-batch 1 --global-batch 1536 --machine dgx-a100",
      nullptr);
  add_plan_calibrate(*command);
  command->callback([request, command] {
    if (command->get_subcommands().empty()) exit_status() = run_plan(*request);
  });
  command->add_option("--model", request->model,
                      "A known model, a file (HF config.json, NeoX yml, Megatron arguments) or "
                      "h=…,a=…,layers=…,vocab=…,seq=…");
  add_as(*command, request->as);
  command->add_option("--layout", request->layout,
                      "dp=8,tp=4,pp=2,sp=on,zero=1,… or a ds_config.json, NeoX yml or Megatron arguments, or "
                      "both: FILE,dp=8");
  command
      ->add_option("--framework", request->framework,
                   "textbook, megatron, deepspeed, neox, ddp, fsdp1, fsdp2 or nanotron")
      ->capture_default_str();
  command->add_option("--micro-batch", request->micro_batch, "Samples per forward pass")
      ->check(CLI::PositiveNumber);
  command->add_option("--global-batch", request->global_batch, "Samples per step over all ranks")
      ->check(CLI::PositiveNumber);
  command->add_option("--seq", request->seq, "Tokens per sample; default: the model's")
      ->check(CLI::PositiveNumber);
  command->add_option("--dtype", request->dtype, "bf16, f16 or f32");
  command->add_option("--machine", request->machine,
                      fmt::format("Also say how long the step takes on this machine: a TOML file or {}",
                                  fmt::join(cost::machine_names(), ", ")));
  command->add_flag("--force", request->force, "Exit 0 also when the layout does not fit the GPU's memory");
  command->add_option("--rank", request->rank,
                      "Whose plan; default: the busiest rank; with --schedule also: all");
  command->add_option("--small", request->small, "Messages up to this size count as small")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  command
      ->add_option("--sweep", request->sweeps,
                   "KEY=A:B (doubling), KEY=A:B:STEP or KEY=A,B,C; several make a grid. Keys: layout keys, "
                   "hidden, layers, …, model")
      ->allow_extra_args(false);
  command->add_option(
      "--against", request->against,
      "Lay the plan beside an AICB workload (csv) and explain every difference; exit 1 if one has no cause");
  command->add_option("--json", request->json, "Write the plan to FILE ('-': stdout)");
  command->add_option("--schedule", request->schedule_file,
                      "Write every operation in order to FILE ('-': stdout)");
  command->add_flag("--all-rows", request->all_rows, "Show every row, also where many differ in size only");
}

}  // namespace medley::cli
