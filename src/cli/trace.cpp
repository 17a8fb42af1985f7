// medley trace: what a recorded run sent and where its time went; export to other tools.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <medley/error.hpp>

#include "base/write_file.hpp"
#include "cli/command.hpp"
#include "cli/plan.hpp"
#include "cli/sizes.hpp"
#include "cli/table.hpp"
#include "trace/export.hpp"
#include "trace/export_schedule.hpp"
#include "trace/report.hpp"

namespace medley::cli {
namespace {

struct TraceArguments {
  std::string path, json, csv, perfetto, chakra, schedule, small = "64K";
  int rank = -1;
  std::size_t steps = 0;
  bool all_rows = false;
};

std::string bytes_text(std::int64_t bytes) { return size_text(static_cast<double>(bytes)); }

template <typename Write>
void write_file(const std::string& path, const Write& write) {
  if (path.empty()) return;
  if (path == "-") return write(std::cout);
  core::write_file(path, write);
}

void print_problems(const trace::Problems& problems) {
  if (problems.list.empty()) return;
  const std::size_t count = problems.list.size() + problems.left_out;
  fmt::print("{} operation{} did not end well:\n", count, count == 1 ? "" : "s");
  for (const trace::Problem& p : problems.list) fmt::print("  {:<10}  {}\n", p.kind, p.sentence);
  if (problems.left_out > 0) fmt::print("  and {} more\n", problems.left_out);
  fmt::print("\n");
}

void print_decisions(const trace::Trace& t) {
  if (t.decisions.empty()) return;
  std::size_t changed = 0;
  for (const RouteDecision& one : t.decisions) changed += one.changed;
  fmt::print("\nroutes in the running job (MEDLEY_ONLINE): changed {} time{}, measured again and kept {} time{}\n",
             changed, changed == 1 ? "" : "s", t.decisions.size() - changed,
             t.decisions.size() - changed == 1 ? "" : "s");
  for (const RouteDecision& one : t.decisions) {
    if (!one.changed) continue;
    const std::string most = one.to_bytes == INT64_MAX ? "" : bytes_text(one.to_bytes);
    fmt::print("  comm {} from #{} on: {} of {}-{} takes {} instead of {}: {}\n", one.comm, one.sequence, name(one.op),
               bytes_text(one.from_bytes), most, one.to, one.from, one.reason);
  }
}

std::string steps_text(const trace::Summary& s) {
  const std::size_t n = s.steps.steps.size();
  if (s.steps.found_by == "nothing")
    return "no repeating step was found: the whole run is shown as one (--steps N cuts it)";
  std::string text = fmt::format("{} step{}", n, n == 1 ? "" : "s");
  if (s.steps.found_by == "scope") text += ", told apart by the scope \"step\"";
  if (s.steps.found_by == "mark") text += ", as the profiler marked them";
  if (s.steps.found_by == "period") text += ", found by their period";
  if (s.unlike > 0) text += fmt::format("; {} of them differ from step {}, which is shown", s.unlike, s.typical + 1);
  if (s.step_us > 0) text += fmt::format("; median {:.1f} µs", s.step_us);
  return text;
}

void print_head(const trace::Report& report) {
  const trace::Trace& t = report.trace;
  std::int64_t issued = 0;
  for (const auto& rank : t.ranks) issued += rank.issued;
  fmt::print("{}: {} operations of {} of {} ranks ({})\n", t.source, issued, t.ranks.size(),
             std::max<std::size_t>(t.ranks.size(), static_cast<std::size_t>(t.world)), t.format);
  for (const std::string& remark : report.remarks()) fmt::print("note: {}\n", remark);
  if (t.clock_error > 0)
    fmt::print("clocks of the hosts agree within {:.1f} µs after alignment\n", t.clock_error / 1e3);
  fmt::print("rank {}: {}\n\n", report.summary.rank, steps_text(report.summary));
}

void print_rows(const trace::Report& report, bool all) {
  const trace::Trace& t = report.trace;
  const std::vector<trace::Row>& rows = report.summary.rows;
  Table table({"op", "group", "n", "bytes", "count", "phase", "module", "backend", "median µs", "p99 µs", "total µs",
               "exposed"});
  for (const trace::Row& r : all ? rows : trace::merged(rows)) {
    const trace::Group& group = t.groups[r.group];
    const auto us = [&](double value) { return r.timed > 0 ? fmt::format("{:.2f}", value) : std::string("-"); };
    table.add({std::string(name(r.op)), group.name, group.size > 0 ? std::to_string(group.size) : "?",
               r.sized ? std::to_string(r.bytes) : "?", std::to_string(r.count), r.phase, r.module, r.backend,
               us(r.median_us), us(r.p99_us), us(r.total_us),
               r.total_us > 0 && r.exposed_known
                   ? fmt::format("{:.0f} %", 100 * std::min(1.0, r.exposed_us / r.total_us))
                   : "-"});
  }
  fmt::print("{}\n", table.str());
}

void print_totals(const trace::Report& report) {
  Table table({"group", "count", "bytes", "on the wire", "time µs", "exposed µs"});
  for (const auto& [group, total] : report.totals) {
    table.add({group, std::to_string(total.count), bytes_text(total.bytes), size_text(total.wire_bytes),
               report.trace.timed ? fmt::format("{:.1f}", total.us) : "-",
               report.trace.timed && total.exposed_known ? fmt::format("{:.1f}", total.exposed_us) : "-"});
  }
  fmt::print("{}", table.str());
  const trace::Sizes& sizes = report.sizes;
  if (sizes.count == 0) return;
  fmt::print("{:.1f} % of the messages and {:.4f} % of the bytes are small (up to {})\n",
             100 * sizes.small_share_of_count, 100 * sizes.small_share_of_bytes, bytes_text(sizes.small));
}

void print_skew(const trace::Trace& t, const std::vector<trace::Skew>& skew) {
  if (skew.empty()) return;
  Table table({"group", "op", "collectives", "apart: median µs", "p99 µs", "largest µs", "last most often"});
  for (const trace::Skew& s : skew) {
    table.add({t.groups[s.group].name, std::string(name(s.op)), std::to_string(s.collectives),
               fmt::format("{:.1f}", s.median_us), fmt::format("{:.1f}", s.p99_us), fmt::format("{:.1f}", s.max_us),
               fmt::format("rank {} ({:.0f} %, {:.0f} µs late in all)", s.last_rank, 100 * s.last_share, s.late_us)});
  }
  fmt::print("\nhow far apart the ranks come to a collective\n{}", table.str());
}

void print_layout(const trace::InferredLayout& layout) {
  if (layout.evidence.empty()) return;
  fmt::print("\nlayout, by what was sent: {}\n",
             layout.complete ? layout.text() : "no single layout explains these groups");
  for (const std::string& line : layout.evidence) fmt::print("  {}\n", line);
}

int run_trace(const TraceArguments& given) {
  const int streams = (given.json == "-") + (given.csv == "-") + (given.perfetto == "-") + (given.schedule == "-");
  if (streams > 1) throw Error(ErrorKind::invalid, "only one of --json, --csv, --perfetto and --schedule can be '-'");
  const trace::Report report =
      trace::make_report({given.path, given.rank, given.steps, static_cast<std::int64_t>(parse_size(given.small))});
  const trace::Trace& t = report.trace;
  write_json(given.json, trace::to_json(report));
  write_file(given.csv, [&](std::ostream& out) { trace::write_csv(t, out); });
  write_file(given.perfetto, [&](std::ostream& out) { trace::write_perfetto(t, out); });
  if (!given.chakra.empty()) trace::write_chakra(t, given.chakra);
  if (!given.schedule.empty()) write_json(given.schedule, trace::schedule_json(t, given.steps));
  if (streams > 0) return 0;
  print_problems(report.problems);
  print_head(report);
  print_rows(report, given.all_rows);
  print_totals(report);
  print_skew(t, report.skew);
  print_layout(report.layout);
  print_decisions(t);
  return 0;
}

}  // namespace

void add_trace(CLI::App& app) {
  auto given = std::make_shared<TraceArguments>();
  CLI::App* command =
      add_command(app, "trace", "What a recorded run sent and where its time went",
                  "MEDLEY_TRACE=out/run7 medley run -n 4 ./train && medley trace out/run7 --perfetto run7.json",
                  [given] { return run_trace(*given); });
  command
      ->add_option(
          "TRACE", given->path,
          "A folder that MEDLEY_TRACE named, a flight recorder's folder, one rank's file, or a trace of "
          "another tool, also as .gz or .zst: a log with DeepSpeed's comms logger or NCCL's calls, PyTorch's flight "
          "recorder, a Chrome trace of torch.profiler, a Chakra trace")
      ->required();
  command->add_option("--rank", given->rank, "Rank whose step is shown; default: the busiest")
      ->check(whole(0, 1 << 30));
  command->add_option("--steps", given->steps, "Steps in the trace; default: found by scope or period")
      ->check(positive());
  command->add_option("--small", given->small, "Messages up to this size count as small")->capture_default_str();
  command->add_flag("--all-rows", given->all_rows, "A row for every scope and algorithm");
  add_json(*command, given->json, "the tables");
  names_file(command->add_option("--csv", given->csv, "Write every operation as a line of CSV; - for stdout"));
  names_file(command->add_option("--perfetto", given->perfetto,
                                 "Write a Chrome trace that ui.perfetto.dev opens; - for stdout"));
  names_file(
      command->add_option("--chakra", given->chakra,
                          "Write a Chakra execution trace of each rank into this folder, for ASTRA-sim and its like"),
      "DIR");
  names_file(command->add_option(
      "--schedule", given->schedule,
      "Write the step of median length as a schedule of all ranks, for medley replay and medley tune --for; - for stdout"));
}

}  // namespace medley::cli
