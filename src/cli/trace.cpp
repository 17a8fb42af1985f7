// medley trace: what a recorded run sent and where its time went; export to other tools.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <iostream>
#include <medley/error.hpp>

#include "base/write_file.hpp"
#include "cli/command.hpp"
#include "cli/plan.hpp"
#include "cli/sizes.hpp"
#include "cli/table.hpp"
#include "trace/export.hpp"
#include "trace/infer_layout.hpp"

namespace medley::cli {
namespace {

struct TraceArguments {
  std::string path, json, csv, perfetto, chakra, small = "64K";
  int rank = -1;
  std::size_t steps = 0;
  bool all_rows = false;
};

std::string bytes_text(std::int64_t bytes) {
  return size_text(static_cast<double>(bytes));
}

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

std::string steps_text(const trace::Summary& s) {
  const std::size_t n = s.steps.steps.size();
  if (s.steps.found_by == "nothing")
    return "no repeating step was found: the whole run is shown as one (--steps N cuts it)";
  std::string text = fmt::format("{} step{}", n, n == 1 ? "" : "s");
  if (s.steps.found_by == "scope") text += ", told apart by the scope \"step\"";
  if (s.steps.found_by == "mark") text += ", as the profiler marked them";
  if (s.steps.found_by == "period") text += ", found by their period";
  if (s.unlike > 0)
    text += fmt::format("; {} of them differ from step {}, which is shown", s.unlike, s.typical + 1);
  if (s.step_us > 0) text += fmt::format("; median {:.1f} µs", s.step_us);
  return text;
}

void print_head(const trace::Trace& t, const trace::Summary& s) {
  std::int64_t issued = 0;
  for (const auto& rank : t.ranks) issued += rank.issued;
  fmt::print("{}: {} operations of {} of {} ranks ({})\n", t.source, issued, t.ranks.size(),
             std::max<std::size_t>(t.ranks.size(), static_cast<std::size_t>(t.world)), t.format);
  for (const auto& remark : t.remarks) fmt::print("note: {}\n", remark);
  for (const auto& rank : t.ranks) {
    for (const auto& remark : rank.remarks) fmt::print("note: rank {}: {}\n", rank.rank, remark);
  }
  if (t.clock_error > 0)
    fmt::print("clocks of the hosts agree within {:.1f} µs after alignment\n", t.clock_error / 1e3);
  fmt::print("rank {}: {}\n\n", s.rank, steps_text(s));
}

/// Rows that differ in nothing a reader of the table sees become one.
std::vector<trace::Row> shown(const std::vector<trace::Row>& rows, bool all) {
  if (all) return rows;
  std::vector<trace::Row> out;
  for (const trace::Row& r : rows) {
    const auto same = std::find_if(out.begin(), out.end(), [&](const trace::Row& o) {
      return o.op == r.op && o.group == r.group && o.bytes == r.bytes && o.backend == r.backend &&
             o.phase == r.phase;
    });
    if (same == out.end()) {
      out.push_back(r);
      continue;
    }
    same->median_us =
        (same->median_us * static_cast<double>(same->timed) + r.median_us * static_cast<double>(r.timed)) /
        std::max(1.0, static_cast<double>(same->timed + r.timed));
    same->count += r.count;
    same->timed += r.timed;
    same->total_us += r.total_us;
    same->exposed_us += r.exposed_us;
    same->p99_us = std::max(same->p99_us, r.p99_us);
    if (same->module != r.module) same->module = "…";
  }
  return out;
}

void print_rows(const trace::Trace& t, const trace::Summary& s, bool all) {
  Table table({"op", "group", "n", "bytes", "count", "phase", "module", "backend", "median µs", "p99 µs",
               "total µs", "exposed"});
  for (const trace::Row& r : shown(s.rows, all)) {
    const trace::Group& group = t.groups[r.group];
    const auto us = [&](double value) {
      return r.timed > 0 ? fmt::format("{:.2f}", value) : std::string("-");
    };
    table.add(
        {std::string(name(r.op)), group.name, group.size > 0 ? std::to_string(group.size) : "?",
         r.sized ? std::to_string(r.bytes) : "?", std::to_string(r.count), r.phase, r.module, r.backend, us(r.median_us),
         us(r.p99_us), us(r.total_us),
         r.total_us > 0 && t.waits_known ? fmt::format("{:.0f} %", 100 * r.exposed_us / r.total_us) : "-"});
  }
  fmt::print("{}\n", table.str());
}

void print_totals(const trace::Trace& t, const trace::Summary& s, std::int64_t small) {
  const nlohmann::ordered_json totals = trace::totals_json(s.rows, t);
  Table table({"group", "count", "bytes", "on the wire", "time µs", "exposed µs"});
  std::int64_t count = 0, bytes = 0, few = 0, small_bytes = 0;
  for (const auto& [group, total] : totals.items()) {
    table.add({group, std::to_string(total["count"].get<std::int64_t>()),
               bytes_text(total["bytes"].get<std::int64_t>()), size_text(total["wire_bytes"].get<double>()),
               fmt::format("{:.1f}", total.value("total_us", 0.0)),
               fmt::format("{:.1f}", total.value("exposed_us", 0.0))});
  }
  for (const trace::Row& r : s.rows) {
    if (r.op == Op::barrier) continue;
    count += r.count;
    bytes += r.count * r.bytes;
    few += r.bytes <= small ? r.count : 0;
    small_bytes += r.bytes <= small ? r.count * r.bytes : 0;
  }
  fmt::print("{}", table.str());
  if (count == 0) return;
  fmt::print("{:.1f} % of the messages and {:.4f} % of the bytes are small (up to {})\n",
             100.0 * static_cast<double>(few) / static_cast<double>(count),
             bytes > 0 ? 100.0 * static_cast<double>(small_bytes) / static_cast<double>(bytes) : 0.0,
             bytes_text(small));
}

void print_skew(const trace::Trace& t, const std::vector<trace::Skew>& skew) {
  if (skew.empty()) return;
  Table table({"group", "op", "collectives", "apart: median µs", "p99 µs", "largest µs", "last most often"});
  for (const trace::Skew& s : skew) {
    table.add({t.groups[s.group].name, std::string(name(s.op)), std::to_string(s.collectives),
               fmt::format("{:.1f}", s.median_us), fmt::format("{:.1f}", s.p99_us),
               fmt::format("{:.1f}", s.max_us),
               fmt::format("rank {} ({:.0f} %, {:.0f} µs late in all)", s.last_rank, 100 * s.last_share,
                           s.late_us)});
  }
  fmt::print("\nhow far apart the ranks come to a collective\n{}", table.str());
}

void print_layout(const trace::InferredLayout& layout) {
  if (layout.evidence.empty()) return;
  fmt::print("\nlayout, by what was sent: {}{}\n", layout.text(),
             layout.complete ? "" : " (that is not all of the ranks: a guess in parts)");
  for (const std::string& line : layout.evidence) fmt::print("  {}\n", line);
}

nlohmann::ordered_json json_of(const trace::Trace& t, const trace::Summary& s,
                               const trace::Problems& problems, const std::vector<trace::Skew>& skew,
                               const trace::InferredLayout& layout, std::int64_t small) {
  nlohmann::ordered_json histogram = nlohmann::ordered_json::array();
  std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> bins;
  std::int64_t count = 0, bytes = 0, few = 0, few_bytes = 0;
  for (const trace::Row& r : s.rows) {
    if (r.bytes < 1) continue;
    auto& [n, b] = bins[static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(r.bytes)))];
    n += r.count;
    b += r.count * r.bytes;
    count += r.count;
    bytes += r.count * r.bytes;
    few += r.bytes <= small ? r.count : 0;
    few_bytes += r.bytes <= small ? r.count * r.bytes : 0;
  }
  for (const auto& [low, bin] : bins)
    histogram.push_back({{"low", low}, {"count", bin.first}, {"bytes", bin.second}});
  std::vector<std::string> remarks = t.remarks;
  for (const auto& rank : t.ranks) {
    for (const auto& remark : rank.remarks) remarks.push_back(fmt::format("rank {}: {}", rank.rank, remark));
  }
  const auto share = [](std::int64_t part, std::int64_t all) {
    return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0.0;
  };
  return {{"source", t.source},
          {"format", t.format},
          {"world", t.world},
          {"ranks_traced", t.ranks.size()},
          {"rank", s.rank},
          {"steps", s.steps.steps.size()},
          {"steps_found_by", s.steps.found_by},
          {"steps_unlike", s.unlike},
          {"step_us", s.step_us},
          {"rows", trace::to_json(s.rows, t)},
          {"totals", trace::totals_json(s.rows, t)},
          {"histogram", histogram},
          {"small",
           {{"limit", small},
            {"share_of_count", share(few, count)},
            {"share_of_bytes", share(few_bytes, bytes)}}},
          {"layout", {{"text", layout.text()}, {"complete", layout.complete}, {"evidence", layout.evidence}}},
          {"skew", trace::to_json(skew, t)},
          {"problems", trace::to_json(problems, t)},
          {"clock_error_us", t.clock_error / 1e3},
          {"remarks", remarks}};
}

int run_trace(const TraceArguments& given) {
  const int streams = (given.json == "-") + (given.csv == "-") + (given.perfetto == "-");
  if (streams > 1) throw Error(ErrorKind::invalid, "only one of --json, --csv and --perfetto can be '-'");
  const trace::Trace t = trace::open_trace(given.path);
  const auto small = static_cast<std::int64_t>(parse_size(given.small));
  const trace::RankTrace& rank = given.rank >= 0 ? t.rank(given.rank) : trace::busiest(t);
  const trace::Summary summary = trace::summarise(t, rank, trace::find_steps(t, rank, given.steps));
  const trace::Problems problems = trace::find_problems(t);
  const std::vector<trace::Skew> skew = trace::find_skew(t);
  const trace::InferredLayout layout = trace::infer_layout(t);
  write_json(given.json, json_of(t, summary, problems, skew, layout, small));
  write_file(given.csv, [&](std::ostream& out) { trace::write_csv(t, out); });
  write_file(given.perfetto, [&](std::ostream& out) { trace::write_perfetto(t, out); });
  if (!given.chakra.empty()) trace::write_chakra(t, given.chakra);
  if (streams > 0) return 0;
  print_problems(problems);
  print_head(t, summary);
  print_rows(t, summary, given.all_rows);
  print_totals(t, summary, small);
  print_skew(t, skew);
  print_layout(layout);
  return 0;
}

}  // namespace

void add_trace(CLI::App& app) {
  auto given = std::make_shared<TraceArguments>();
  CLI::App* command = add_command(
      app, "trace", "What a recorded run sent and where its time went",
      "MEDLEY_TRACE=out/run7 medley run -n 4 ./train && medley trace out/run7 --perfetto run7.json",
      [given] { return run_trace(*given); });
  command
      ->add_option(
          "TRACE", given->path,
          "A folder that MEDLEY_TRACE named, a flight recorder's folder, one rank's file, or a trace of "
          "another tool, also as .gz or .zst: a log with DeepSpeed's comms logger or NCCL's calls, PyTorch's flight "
          "recorder, a Chrome trace of torch.profiler, a Chakra trace")
      ->required();
  command->add_option("--rank", given->rank, "Whose step is shown; default: the busiest rank's")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--steps", given->steps, "Steps in the trace; default: found by scope or period")
      ->check(CLI::PositiveNumber);
  command->add_option("--small", given->small, "Up to which size a message counts as small")
      ->capture_default_str();
  command->add_flag("--all-rows", given->all_rows, "A row for every scope and algorithm");
  command->add_option("--json", given->json, "Write the tables as JSON; - for stdout");
  command->add_option("--csv", given->csv, "Write every operation as a line of CSV; - for stdout");
  command->add_option("--perfetto", given->perfetto,
                      "Write a Chrome trace that ui.perfetto.dev opens; - for stdout");
  command->add_option("--chakra", given->chakra,
                      "Write a Chakra execution trace of each rank into this folder, for ASTRA-sim and its like");
}

}  // namespace medley::cli
