// medley explain: the route a table gives an operation, the runners-up and by how much, and why.
#include <fmt/format.h>

#include <algorithm>
#include <medley/error.hpp>

#include "base/v_collectives.hpp"
#include "cli/command.hpp"
#include "cli/sizes.hpp"
#include "cli/table.hpp"
#include "engine/size_agreement.hpp"
#include "route/choose.hpp"

namespace medley::cli {
namespace {

struct ExplainArguments {
  std::string table, op, bytes;
  int ranks = 0;
  int hosts = 1;
  std::string memory = "host";
  std::string dtype = "f32";
  std::string backends;
  std::string json;
};

struct Question {
  Op op{};
  std::int64_t bytes = 0;
  Memory memory{};
  route::DTypeClass dtype{};
  route::Shape shape{};
  std::vector<std::string> backends;   ///< empty: all
};

Question question_of(const ExplainArguments& given) {
  Question question;
  const auto op = parse_op(given.op);
  if (!op) throw Error(ErrorKind::invalid, fmt::format("\"{}\" is not an operation; see medley info", given.op));
  const auto dtype = parse_dtype(given.dtype);
  if (!dtype) throw Error(ErrorKind::invalid, fmt::format("\"{}\" is not an element type; see medley info", given.dtype));
  if (given.hosts > given.ranks) {
    throw Error(ErrorKind::invalid, fmt::format("{} ranks cannot be on {} hosts", given.ranks, given.hosts));
  }
  question.op = *op;
  question.bytes = static_cast<std::int64_t>(parse_size(given.bytes));
  question.memory = given.memory == "cuda" ? Memory::cuda : Memory::host;
  question.dtype = route::class_of(*op, *dtype);
  question.shape = {given.hosts, (given.ranks + given.hosts - 1) / given.hosts};
  question.backends = parse_list(given.backends);
  return question;
}

struct Answer {
  route::Chosen chosen;
  const route::SizeRange* range = nullptr;
  const route::Cell* cell = nullptr;   ///< the row nearest in size
  std::vector<std::string> why;
};

bool same(const Choice& a, const Choice& b) { return a.backend == b.backend && a.algorithm == b.algorithm; }

Answer answer_to(const Question& question, const route::Table& table) {
  Answer answer;
  answer.chosen = route::choose(table, question.op, question.memory, question.dtype, question.shape, [&](const Choice& choice) {
    return question.backends.empty() ||
           std::find(question.backends.begin(), question.backends.end(), choice.backend) != question.backends.end();
  });
  for (const route::SizeRange& range : answer.chosen.ranges) {
    if (question.bytes >= range.from && question.bytes <= range.to) answer.range = &range;
  }
  answer.cell = route::nearest_size(answer.chosen.cells, question.bytes);
  if (!answer.range) return answer;
  auto& why = answer.why;
  const route::SizeRange& range = *answer.range;
  if (!is_collective(question.op)) {
    why.emplace_back("sends and receives take one route for all sizes: a receive may be larger than what is sent to it");
  } else {
    why.push_back(fmt::format("this route holds from {} to {}", size_text(static_cast<std::size_t>(range.from)),
                              range.to == INT64_MAX ? "any size" : size_text(static_cast<std::size_t>(range.to))));
  }
  if (core::has_local_counts(question.op)) {
    why.push_back(fmt::format("the size that counts is what the ranks told each other of {} calls up to {} before, since they know "
                              "different counts", name(question.op), core::sizes_settle_after));
  }
  if (answer.chosen.shape != question.shape) {
    why.push_back(fmt::format("{} was not measured; the rows of {} are the nearest", route::text(question.shape),
                              route::text(answer.chosen.shape)));
  }
  if (answer.chosen.dtype != question.dtype) {
    why.push_back(fmt::format("{} elements were not measured; {} ones stand in", name(question.dtype), name(answer.chosen.dtype)));
  }
  if (answer.cell->key.bytes != question.bytes) {
    why.push_back(fmt::format("the row nearest in size is {}", size_text(static_cast<std::size_t>(answer.cell->key.bytes))));
  }
  if (!same(answer.cell->routes.front().route, range.route)) {
    why.push_back(fmt::format("{}/{} was fastest in that row, but near-equal routes (3 % or 0.1 µs) don't alternate, or it is not in --backends",
                              answer.cell->routes.front().route.backend, answer.cell->routes.front().route.algorithm));
  }
  return answer;
}

double slower_than_chosen(const Answer& answer, const route::Timing& timing) {
  const route::Timing* taken = answer.cell->find(answer.range->route);
  return timing.median_us / (taken ? *taken : answer.cell->routes.front()).median_us;
}

void print(const Question& question, const Answer& answer, const route::Table& table, const std::string& path) {
  fmt::print("{} of {} bytes, {} memory, {}\ntable {} ({}), measured on {}\n\n", name(question.op), question.bytes,
             name(question.memory), route::text(question.shape), path, table.hash(), table.machine.cpu);
  if (!answer.range) {
    fmt::print("no row: the built-in order counts, {}\n",
               question.memory == Memory::cuda ? "nccl, or the first backend that moves CUDA memory"
                                               : "shm inside a host, or the first backend of the context");
    return;
  }
  fmt::print("route: {}/{}\n", answer.range->route.backend, answer.range->route.algorithm);
  for (const std::string& line : answer.why) fmt::print("  {}\n", line);
  fmt::print("  confidence that the row's first is the fastest: {:.1f} %\n\n", 100 * answer.cell->confidence);
  Table rows({"", "route", "median µs", "95 % interval", "samples", "against the route"});
  for (const route::Timing& timing : answer.cell->routes) {
    const bool taken = same(timing.route, answer.range->route);
    rows.add({taken ? "*" : "", timing.route.backend + "/" + timing.route.algorithm, fmt::format("{:.2f}", timing.median_us),
              fmt::format("{:.2f} to {:.2f}", timing.low_us, timing.high_us), fmt::format("{}", timing.samples),
              taken ? "" : fmt::format("{:+.1f} %", 100 * (slower_than_chosen(answer, timing) - 1))});
  }
  fmt::print("{}", rows.str());
}

nlohmann::ordered_json json_of(const Question& question, const Answer& answer, const route::Table& table) {
  nlohmann::ordered_json out{{"op", name(question.op)}, {"bytes", question.bytes}, {"hosts", question.shape.hosts},
                             {"ranks_per_host", question.shape.ranks_per_host}, {"memory", name(question.memory)},
                             {"dtype", name(question.dtype)}, {"table", table.hash()}};
  out["reason"] = answer.range ? "table" : "fallback";
  if (!answer.range) return out;
  out["route"] = {{"backend", answer.range->route.backend}, {"algorithm", answer.range->route.algorithm}};
  out["from"] = answer.range->from;
  out["to"] = answer.range->to;
  out["why"] = answer.why;
  out["row"] = {{"bytes", answer.cell->key.bytes}, {"hosts", answer.chosen.shape.hosts},
                {"ranks_per_host", answer.chosen.shape.ranks_per_host}, {"confidence", answer.cell->confidence}};
  for (const route::Timing& timing : answer.cell->routes) {
    out["routes"].push_back({{"backend", timing.route.backend}, {"algorithm", timing.route.algorithm},
                             {"median_us", timing.median_us}, {"low_us", timing.low_us}, {"high_us", timing.high_us},
                             {"samples", timing.samples}, {"slower", slower_than_chosen(answer, timing)}});
  }
  return out;
}

}  // namespace

void add_explain(CLI::App& app) {
  auto given = std::make_shared<ExplainArguments>();
  CLI::App* explain = add_command(app, "explain", "The route an operation would take, the runners-up and why",
                                  "medley explain --table routes.json --op all_reduce --bytes 64K --ranks 4 --hosts 2", [given] {
    const Question question = question_of(*given);
    const route::Table table = route::Table::load(given->table);
    const Answer answer = answer_to(question, table);
    if (given->json != "-") print(question, answer, table, given->table);
    write_json(given->json, json_of(question, answer, table));
    return 0;
  });
  explain->add_option("--table", given->table, "a route table, as medley tune writes it")->required();
  explain->add_option("--op", given->op, "the operation")->required();
  explain->add_option("--bytes", given->bytes, "size of the whole tensor, such as 64K")->required();
  explain->add_option("--ranks", given->ranks, "ranks of the comm")->required()->check(CLI::Range(1, 1 << 24));
  explain->add_option("--hosts", given->hosts, "hosts they are on")->capture_default_str()->check(CLI::Range(1, 1 << 24));
  explain->add_option("--memory", given->memory, "where the tensor lies")->capture_default_str()->check(CLI::IsMember({"host", "cuda"}));
  explain->add_option("--dtype", given->dtype, "element type")->capture_default_str();
  explain->add_option("--backends", given->backends, "backends that the job has (default: all of the table)");
  explain->add_option("--json", given->json, "write the answer as JSON; - for stdout");
}

}  // namespace medley::cli
