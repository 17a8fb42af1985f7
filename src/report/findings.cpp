#include "report/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "report/sentences.hpp"

namespace medley::report {

Json find(const Json& run) {
  std::vector<Finding> all;
  for (const auto& look : {about_problems, about_reconcile, about_steps, about_tuned_steps, about_traces, about_waits,
                           about_shapes, about_routes, about_replays, about_searches, about_plans}) {
    if (std::optional<Finding> finding = look(run)) all.push_back(std::move(*finding));
  }
  std::stable_sort(all.begin(), all.end(), [](const Finding& a, const Finding& b) { return a.weight > b.weight; });
  Json out = Json::array();
  for (const Finding& finding : all)
    out.push_back({{"section", finding.section}, {"sentence", finding.sentence}, {"headline", out.size() < 3}});
  return out;
}

namespace {

bool any_row(const Json& files, const char* rows, bool (*fits)(const Json& file, const Json& row)) {
  return std::any_of(files.begin(), files.end(), [&](const Json& file) {
    return std::any_of(file[rows].begin(), file[rows].end(), [&](const Json& row) { return fits(file, row); });
  });
}

struct Missing {
  const char* list;  ///< list in the run; "tuned" is a part of the route tables
  const char* what;
  const char* command;  ///< {} is the folder
};
constexpr Missing page_parts[] = {
    {"info", "Which backends work here", "medley info --json {}/info.json"},
    {"routes", "Which route is fastest for which operation and size", "medley tune -n 2 -o {}/routes.json"},
    {"bench", "Latency and bandwidth with their deviation",
     "medley bench -n 2 --op all --sizes 64:4M --json {}/bench.json"},
    {"steps", "Whole steps over auto and over each library",
     "medley bench -n 2 --mix all --table {0}/routes.json --json {0}/mixes.json"},
    {"tuned", "A whole step, tuned under its own load", "medley tune -n 2 --for moe -o {}/step.routes.json"},
    {"traces", "What a job sends, when, and what of it is exposed", "MEDLEY_TRACE={}/trace medley run -n 2 -- ./train"},
    {"plans", "What a planned step sends",
     "medley plan --model pythia-2.8b --layout dp=4,tp=2 --machine dgx-h200 --json {}/plan.json"},
    {"reconcile", "Expected against observed",
     "medley reconcile {0}/trace --model pythia-70m --layout dp=2 --framework ddp --json {0}/reconcile.json"},
    {"replays", "Predicted against measured", "medley replay step.json -n 2 --calibrate --json {}/replay.json"},
    {"shapes", "What a model's matrix products lose",
     "medley shape --model gpt2-xl --gpu h200-sxm --json {}/shape.json"},
    {"gemms", "One product at several sizes, such as vocabularies",
     "medley shape gemm --gpu h200-sxm vocab.csv --json {}/vocab.json"},
    {"searches", "Better shapes nearby", "medley shape search --model gpt3-2.7b --gpu h200-sxm --json {}/search.json"},
};

}  // namespace

Json not_measured(const Json& run, const std::string& folder) {
  Json out = Json::array();
  const auto tuned = [](const Json& table) { return !table["tuned"].is_null(); };
  for (const Missing& part : page_parts) {
    const bool there = std::string_view(part.list) == "tuned"
                           ? std::any_of(run["routes"].begin(), run["routes"].end(), tuned)
                           : !run[part.list].empty();
    if (!there) out.push_back({{"what", part.what}, {"command", fmt::format(fmt::runtime(part.command), folder)}});
  }
  const bool measured = !run["routes"].empty() || !run["bench"].empty();
  const bool hosts = any_row(run["routes"], "cells", [](const Json&, const Json& cell) { return cell["hosts"] > 1; }) ||
                     any_row(run["bench"], "rows", [](const Json& file, const Json&) { return file["hosts"] > 1; });
  const bool cuda =
      any_row(run["routes"], "cells", [](const Json&, const Json& cell) { return cell["memory"] == "cuda"; }) ||
      any_row(run["bench"], "rows", [](const Json&, const Json& row) { return row["memory"] == "cuda"; });
  if (measured && !hosts)
    out.push_back(
        {{"what", "Several hosts, where mixing libraries pays most"},
         {"command", fmt::format("mpirun -n 4 --hostfile HOSTS medley tune -o {}/hosts.routes.json", folder)}});
  if (measured && !cuda)
    out.push_back({{"what", "CUDA memory"},
                   {"command", fmt::format("medley tune -n 2 --memory cuda -o {}/cuda.routes.json", folder)}});
  return out;
}

}  // namespace medley::report
