// The functions of medley._analysis that look at what a run left behind: trace, reconcile, watch, explain, report; and info.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "analysis.hpp"
#include "base/write_file.hpp"
#include "cost/plan_step.hpp"
#include "info/info.hpp"
#include "reconcile/report_json.hpp"
#include "report/page.hpp"
#include "trace/export.hpp"
#include "trace/export_schedule.hpp"
#include "trace/report.hpp"
#include "trace/watch_job.hpp"
#include "tune/explain.hpp"
#include "tune/words.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace medley::python {
namespace {

/// What medley.trace writes besides its answer; empty: not written.
struct TraceFiles {
  std::string csv, perfetto, chakra, schedule;
};

std::string trace_text(const trace::ReportRequest& request, const TraceFiles& files) {
  const trace::Report report = trace::make_report(request);
  const auto write = [&](const std::string& path, auto writer) {
    if (!path.empty()) core::write_file(path, [&](std::ostream& out) { writer(report.trace, out); });
  };
  write(files.csv, trace::write_csv);
  write(files.perfetto, trace::write_perfetto);
  if (!files.chakra.empty()) trace::write_chakra(report.trace, files.chakra);
  write(files.schedule, [&](const trace::Trace& recorded, std::ostream& out) { out << trace::schedule_json(recorded, request.steps).dump() << '\n'; });
  return text_of(trace::to_json(report));
}

/// The options of `medley reconcile`: those of a plan, and what they are compared with.
struct ReconcileOptions : cost::PlanRequest {
  reconcile::ReconcileRequest compared{};
};

std::string reconcile_text(const ReconcileOptions& options) {
  reconcile::ReconcileRequest request = options.compared;
  if (request.schedule.empty() && !options.model.empty())
    request.plan = reconcile::Plan{plan::model_of(options), plan::layout_of(options), plan::framework_of(options)};
  return text_of(reconcile::to_json(reconcile::run_reconcile(request)));
}

void bind_reconcile(nb::module_& module) {
  using Options = ReconcileOptions;
  nb::class_<Options, cost::PlanRequest> options(module, "ReconcileRequest", "The options of medley.reconcile.");
  options.def(nb::init<>());
  const auto add = [&]<typename T>(const char* name, T& (*field)(Options&)) {
    options.def_prop_rw(
        name, [field](Options& o) { return field(o); }, [field](Options& o, T value) { field(o) = std::move(value); });
  };
  add("trace", +[](Options& o) -> std::string& { return o.compared.trace; });
  add("schedule", +[](Options& o) -> std::string& { return o.compared.schedule; });
  add("on_machine", +[](Options& o) -> std::string& { return o.compared.machine; });
  add("table", +[](Options& o) -> std::string& { return o.compared.table; });
  add("scale", +[](Options& o) -> double& { return o.compared.scale; });
  add("only_rank", +[](Options& o) -> int& { return o.compared.options.selection.rank; });
  add("steps", +[](Options& o) -> std::size_t& { return o.compared.options.selection.steps; });
  add("step", +[](Options& o) -> std::size_t& { return o.compared.options.selection.step; });
  add("skip", +[](Options& o) -> std::size_t& { return o.compared.options.selection.skip; });
  options.def(
      "ignore", [](Options& o, const std::string& word) { reconcile::ignore(word, o.compared.options); }, "word"_a);
  module.def("reconcile", reconcile_text, "request"_a, nb::call_guard<nb::gil_scoped_release>());
}

std::string explain_text(const std::string& table, const std::string& op, std::int64_t bytes, int ranks, int hosts,
                         const std::string& memory, const std::string& dtype, const std::vector<std::string>& backends) {
  tune::ExplainRequest request{.op = tune::op_of_word(op),
                               .bytes = bytes,
                               .ranks = ranks,
                               .hosts = hosts,
                               .memory = memory == "cuda" ? Memory::cuda : Memory::host,   // a table of another machine is fine
                               .dtype = tune::dtype_of_word(dtype),
                               .backends = backends};
  return text_of(tune::to_json(tune::explain(route::Table::load(table), request)));
}

std::string report_text(const std::string& folder, const std::string& output, const std::string& against) {
  const nlohmann::ordered_json report = report::make_report(folder, against, output);
  const std::string page = report::page_of(report);
  core::write_file(output, [&](std::ostream& out) { out << page; });
  return text_of(report);
}

std::optional<std::string> watch_text(const std::string& path, double stuck_s, double window_s, double late_share) {
  const auto look = trace::look_at_job(path, {.stuck_s = stuck_s, .window_s = window_s, .late_share = late_share});
  if (!look) return std::nullopt;
  nlohmann::ordered_json out = trace::to_json(look->report);
  out["ended"] = look->all_gone;
  return text_of(out);
}

}  // namespace

void bind_insight(nb::module_& module) {
  module.def(
      "trace",
      [](const std::string& path, int rank, std::size_t steps, std::int64_t small, const std::string& csv,
         const std::string& perfetto, const std::string& chakra, const std::string& schedule) {
        return trace_text({path, rank, steps, small}, {csv, perfetto, chakra, schedule});
      },
      "path"_a, "rank"_a, "steps"_a, "small"_a, "csv"_a, "perfetto"_a, "chakra"_a, "schedule"_a, nb::call_guard<nb::gil_scoped_release>());
  bind_reconcile(module);
  module.def("explain", explain_text, "table"_a, "op"_a, "bytes"_a, "ranks"_a, "hosts"_a, "memory"_a, "dtype"_a, "backends"_a,
             nb::call_guard<nb::gil_scoped_release>());
  module.def("report", report_text, "folder"_a, "output"_a, "against"_a, nb::call_guard<nb::gil_scoped_release>());
  module.def("watch", watch_text, "path"_a, "stuck"_a, "window"_a, "late_share"_a, nb::call_guard<nb::gil_scoped_release>());
  module.def("info", [] { return text_of(to_json(build_info())); }, nb::call_guard<nb::gil_scoped_release>());
  module.def("parse_size", tune::parse_size, "text"_a);
}

}  // namespace medley::python
