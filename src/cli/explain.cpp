// medley explain: the route a table selects for an operation, the runners-up with their margins, and why; or what each
// operation of a whole step takes and what that buys.
#include "tune/explain.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <medley/error.hpp>

#include "cli/bench_ranks.hpp"
#include "cli/command.hpp"
#include "cli/explain_print.hpp"
#include "cli/sizes.hpp"
#include "replay/replayed_step.hpp"
#include "tune/explain_step.hpp"
#include "tune/mix_step.hpp"

namespace medley::cli {
namespace {

struct ExplainArguments {
  std::string table, op, bytes;
  std::string memory = "host";
  std::string dtype = "f32";
  std::string backends, allow;
  std::string json;
  std::string step;
  replay::ReplayOptions replay{.tflops = 100};  // of --step SCHEDULE, as in tune --for
  tune::ExplainRequest request{.ranks = 0, .hosts = 1};
  const CLI::App* command = nullptr;
};

/// Unlike tune::memory_of_word it takes memory that this machine has not: a table may be another one's.
Memory memory_named(const std::string& text) { return text == "cuda" ? Memory::cuda : Memory::host; }

tune::ExplainRequest request_of(const ExplainArguments& given) {
  tune::ExplainRequest request = given.request;
  request.op = tune::op_of_word(given.op);
  request.dtype = dtype_of_word(given.dtype);
  request.bytes = static_cast<std::int64_t>(parse_size(given.bytes));
  request.memory = memory_named(given.memory);
  request.backends = parse_list(given.backends);
  request.allow = given.allow;
  return request;
}

/// The host of each rank of the world: as asked for, or as the table was tuned.
std::vector<int> hosts_of(const ExplainArguments& given, const route::Table& table) {
  const int ranks = given.request.ranks, hosts = given.request.hosts;
  if (ranks > 0 && (hosts > ranks || ranks % hosts != 0))
    throw Error(ErrorKind::invalid,
                fmt::format("--step needs hosts with the same number of ranks each; {} ranks are not on {} hosts so",
                            ranks, hosts));
  if (ranks > 0) return route::hosts_in_blocks({hosts, ranks / hosts});
  if (!table.step)
    throw Error(ErrorKind::invalid,
                fmt::format("{} was not tuned for a step; add --ranks, and --hosts for several", given.table));
  return table.step->hosts();
}

tune::StepExplanation explain_step_of(const ExplainArguments& given) {
  const route::Table table = route::Table::load(given.table);
  const std::vector<int> hosts = hosts_of(given, table);
  const Memory memory = memory_named(given.memory);
  if (tune::is_mix(given.step)) {
    const std::vector<tune::StepOperation> operations = tune::operations_of_mix(given.step, hosts);
    return tune::explain_step(table, given.step, operations, tune::fingerprint(operations, 0), memory);
  }
  const replay::WorldSchedule schedule = replay::read_schedule(given.step);
  const std::vector<tune::StepOperation> operations = replay::operations_of(schedule, given.replay, hosts);
  return tune::explain_step(table, std::filesystem::path(given.step).filename(), operations,
                            tune::fingerprint(operations, replay::busiest_us(schedule, given.replay)), memory);
}

int run_explain(ExplainArguments given) {
  given.table = route::table_to_read(given.table);
  if (!given.step.empty()) {
    refuse_beside(*given.command, "--step", {"--op", "--bytes", "--dtype", "--exact", "--allow", "--backends"});
    if (tune::is_mix(given.step)) refuse_beside(*given.command, "--step " + given.step, {"--scale", "--tflops"});
    const tune::StepExplanation answer = explain_step_of(given);
    if (given.json != "-") print(answer, given.table);
    write_json(given.json, tune::to_json(answer));
    return 0;
  }
  if (given.op.empty() || given.bytes.empty() || given.request.ranks == 0)
    throw Error(ErrorKind::invalid, "name an operation with --op, --bytes and --ranks, or a step with --step");
  const tune::ExplainRequest request = request_of(given);
  const tune::Explanation answer = tune::explain(route::Table::load(given.table), request);
  if (given.json != "-") print(answer, given.table);
  write_json(given.json, tune::to_json(answer));
  return 0;
}

}  // namespace

void add_explain(CLI::App& app) {
  auto given = std::make_shared<ExplainArguments>();
  CLI::App* explain = add_command(app, "explain", "The route an operation would take, the runners-up and why",
                                  "medley explain --table routes.json --op all_reduce --bytes 64K --ranks 4 --hosts 2\n"
                                  "  medley explain --table moe.json --step moe",
                                  [given] { return run_explain(*given); });
  given->command = explain;
  names_file(explain->add_option("--table", given->table,
                                 "A route table, as medley tune writes it (default: the one that contexts use)"));
  explain->add_option("--op", given->op, "The operation");
  names_file(explain->add_option(
      "--step", given->step,
      "A whole step instead: a file that medley plan --schedule or medley trace --schedule wrote, or one of the mixes moe, dlrm and "
      "dense"));
  explain->add_option("--scale", given->replay.scale, "With --step SCHEDULE: as it was given to tune --for")
      ->needs("--step")
      ->check(between(1e-9, 1e3))
      ->capture_default_str();
  explain->add_option("--tflops", given->replay.tflops, "With --step SCHEDULE: as it was given to tune --for")
      ->needs("--step")
      ->check(between(0.0, 1e6))
      ->capture_default_str();
  explain->add_option("--bytes", given->bytes, "Size of the whole tensor, such as 64K")->type_name("SIZE");
  explain
      ->add_option("--ranks", given->request.ranks,
                   "Ranks of the comm, or of the step's world (default there: as it was tuned)")
      ->check(whole(1, route::most_ranks));
  explain->add_option("--hosts", given->request.hosts, "Hosts they are on")
      ->capture_default_str()
      ->check(whole(1, route::most_ranks));
  one_of(explain->add_option("--memory", given->memory, "Memory of the tensor")->capture_default_str(),
         {"host", "cuda"});
  explain->add_option("--dtype", given->dtype, "Element type")->capture_default_str();
  explain->add_flag("--exact", given->request.exact, "For sends: on a comm that declares exact message sizes");
  explain->add_option("--allow", given->allow,
                      "Codecs that a rule allows, such as int8,bf16 or error:0.01 (default: none)");
  explain->add_option("--backends", given->backends, "Backends that the job has (default: all of the table)");
  add_json(*explain, given->json, "the answer");
}

}  // namespace medley::cli
