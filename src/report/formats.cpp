#include "report/formats.hpp"

#include <algorithm>
#include <initializer_list>

namespace medley::report {
namespace {

bool has(const Json& file, std::initializer_list<const char*> keys) {
  return std::all_of(keys.begin(), keys.end(), [&](const char* key) { return file.contains(key); });
}

constexpr Format known[] = {
    {"info", "medley info --json",
     [](const Json& f) {
       return has(f, {"version", "operations", "backends"});
     },
     read_info, ""},
    {"bench", "medley bench --json",
     [](const Json& f) {
       return has(f, {"ranks", "clock", "rows"});
     },
     read_bench, ""},
    {"steps", "medley bench --mix --json",
     [](const Json& f) {
       return has(f, {"ranks", "mixes"});
     },
     read_steps, ""},
    {"routes", "medley tune -o", [](const Json& f) { return has(f, {"medley_routes"}); }, read_routes, ""},
    {"replays", "medley replay --json",
     [](const Json& f) {
       return has(f, {"schedule", "step_us", "calibrated_us"});
     },
     read_replay, ""},
    {"reconcile", "medley reconcile --json",
     [](const Json& f) {
       return has(f, {"matched", "differences", "hypotheses"});
     },
     read_reconcile, ""},
    {"plans", "medley plan --json",
     [](const Json& f) {
       return has(f, {"framework", "totals", "textbook"});
     },
     read_plan, ""},
    {"shapes", "medley shape --json",
     [](const Json& f) {
       return has(f, {"gpu", "gemms", "advice"});
     },
     read_shape, ""},
    {"gemms", "medley shape gemm --json",
     [](const Json& f) {
       return has(f, {"gpu", "sustained", "rows"});
     },
     read_gemms, ""},
    {"lints", "medley shape lint --json",
     [](const Json& f) {
       return has(f, {"gpu", "allow", "findings"});
     },
     read_lint, ""},
    {"searches", "medley shape search --json",
     [](const Json& f) {
       return has(f, {"gpu", "pareto", "given"});
     },
     read_search, ""},
    {"", "medley plan --schedule",
     [](const Json& f) { return has(f, {"schema"}) && f["schema"] == "medley.schedule/1"; }, nullptr,
     "a schedule is what medley replay runs; the report shows the plan (medley plan --json) and the replay"},
    {"", "medley plan --sweep --json",
     [](const Json& f) {
       return has(f, {"sweep", "points"});
     },
     nullptr, "the report shows single plans, not sweeps"},
    {"", "medley trace --json",
     [](const Json& f) {
       return has(f, {"steps_found_by", "histogram"});
     },
     nullptr, "the report reads the trace itself, which has the times of each operation"},
};

}  // namespace

std::span<const Format> formats() { return known; }

const Format* format_of(const Json& file) {
  if (!file.is_object()) return nullptr;
  const auto found = std::find_if(std::begin(known), std::end(known), [&](const Format& f) { return f.matches(file); });
  return found == std::end(known) ? nullptr : found;
}

}  // namespace medley::report
