// medley explain: the route a table selects for an operation, the runners-up with their margins, and why.
#include "tune/explain.hpp"

#include <fmt/format.h>

#include <medley/error.hpp>

#include "cli/bench_ranks.hpp"
#include "cli/command.hpp"
#include "cli/sizes.hpp"
#include "cli/table.hpp"

namespace medley::cli {
namespace {

struct ExplainArguments {
  std::string table, op, bytes;
  std::string memory = "host";
  std::string dtype = "f32";
  std::string backends;
  std::string json;
  tune::ExplainRequest request{.ranks = 0, .hosts = 1};
};

tune::ExplainRequest request_of(const ExplainArguments& given) {
  tune::ExplainRequest request = given.request;
  const auto op = parse_op(given.op);
  if (!op) throw Error(ErrorKind::invalid, fmt::format("\"{}\" is not an operation; see medley info", given.op));
  request.op = *op;
  request.dtype = dtype_of_word(given.dtype);
  request.bytes = static_cast<std::int64_t>(parse_size(given.bytes));
  request.memory = given.memory == "cuda" ? Memory::cuda : Memory::host;
  request.backends = parse_list(given.backends);
  return request;
}

void print(const tune::Explanation& answer, const std::string& path) {
  fmt::print("{} of {} bytes, {} memory, {}\ntable {} ({}), measured on {}\n\n", name(answer.asked.op),
             answer.asked.bytes, name(answer.asked.memory), route::text(answer.shape), path,
             answer.table_hash, answer.measured_on);
  if (!answer.found) {
    fmt::print("no row: the built-in order counts, {}\n",
               answer.asked.memory == Memory::cuda
                   ? "nccl, or the first backend that moves CUDA memory"
                   : "shm inside a host, or the first backend of the context");
    return;
  }
  fmt::print("route: {}/{}\n", answer.route.backend, answer.route.algorithm);
  for (const std::string& line : answer.why) fmt::print("  {}\n", line);
  fmt::print("  confidence that the row's first is the fastest: {:.1f} %\n\n", 100 * answer.confidence);
  Table rows({"", "route", "median µs", "95 % interval", "samples", "against the route"});
  for (const auto& [timing, slower, taken] : answer.routes) {
    rows.add({taken ? "*" : "", timing.route.backend + "/" + timing.route.algorithm,
              fmt::format("{:.2f}", timing.median_us),
              fmt::format("{:.2f} to {:.2f}", timing.low_us, timing.high_us),
              fmt::format("{}", timing.samples), taken ? "" : fmt::format("{:+.1f} %", 100 * (slower - 1))});
  }
  fmt::print("{}", rows.str());
}

int run_explain(const ExplainArguments& given) {
  const tune::ExplainRequest request = request_of(given);
  const tune::Explanation answer = tune::explain(route::Table::load(given.table), request);
  if (given.json != "-") print(answer, given.table);
  write_json(given.json, tune::to_json(answer));
  return 0;
}

}  // namespace

void add_explain(CLI::App& app) {
  auto given = std::make_shared<ExplainArguments>();
  CLI::App* explain =
      add_command(app, "explain", "The route an operation would take, the runners-up and why",
                  "medley explain --table routes.json --op all_reduce --bytes 64K --ranks 4 --hosts 2",
                  [given] { return run_explain(*given); });
  explain->add_option("--table", given->table, "a route table, as medley tune writes it")->required();
  explain->add_option("--op", given->op, "the operation")->required();
  explain->add_option("--bytes", given->bytes, "size of the whole tensor, such as 64K")->required();
  explain->add_option("--ranks", given->request.ranks, "ranks of the comm")
      ->required()
      ->check(CLI::Range(1, 1 << 24));
  explain->add_option("--hosts", given->request.hosts, "hosts they are on")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 24));
  explain->add_option("--memory", given->memory, "where the tensor lies")->capture_default_str()->check(CLI::IsMember({"host", "cuda"}));
  explain->add_option("--dtype", given->dtype, "element type")->capture_default_str();
  explain->add_option("--backends", given->backends, "backends that the job has (default: all of the table)");
  explain->add_option("--json", given->json, "write the answer as JSON; - for stdout");
}

}  // namespace medley::cli
