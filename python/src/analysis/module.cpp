// medley._analysis: the functions behind the commands for Python, here those of `medley plan` and `medley shape`. Each returns the
// JSON that the command writes; medley/analysis.py and its neighbours make typed objects of it. Errors are translated by medley._core.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "analysis.hpp"
#include "base/write_file.hpp"
#include "cost/gemm_times.hpp"
#include "cost/layout_search.hpp"
#include "shape/compare.hpp"
#include "shape/lint_config.hpp"
#include "shape/report.hpp"
#include "shape/search_shapes.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace medley::python {

namespace {

/// A Python callable as the progress of a library function.
std::function<void(std::size_t, std::size_t)> counted(nb::handle progress) {
  return [tell = Progress(progress)](std::size_t done, std::size_t of) {
    tell(static_cast<double>(done), static_cast<double>(of));
  };
}

/// Binds a function of a request that tells how far it is.
template <class Request, class Function>
void bind_counting(nb::module_& module, const char* name, Function function) {
  module.def(
      name,
      [function](Request request, nb::handle progress) {
        request.progress = counted(progress);
        const nb::gil_scoped_release released;
        return text_of(to_json(function(request)));
      },
      "request"_a, "progress"_a.none());
}

}  // namespace

void bind_plan(nb::module_& module) {
  using cost::LayoutSearchRequest, cost::PlanRequest, cost::SweepRequest;
  nb::class_<PlanRequest>(module, "PlanRequest", "The options of medley.plan.")
      .def(nb::init<>())
      .def_rw("model", &PlanRequest::model)
      .def_rw("family", &PlanRequest::as)
      .def_rw("layout", &PlanRequest::layout)
      .def_rw("framework", &PlanRequest::framework)
      .def_rw("micro_batch", &PlanRequest::micro_batch)
      .def_rw("global_batch", &PlanRequest::global_batch)
      .def_rw("seq", &PlanRequest::seq)
      .def_rw("dtype", &PlanRequest::dtype)
      .def_rw("rank", &PlanRequest::rank, nb::arg().none())
      .def_rw("machine", &PlanRequest::machine)
      .def_rw("small", &PlanRequest::small)
      .def_rw("tokens", &PlanRequest::tokens);
  nb::class_<SweepRequest, PlanRequest>(module, "SweepRequest", "The options of medley.plan_sweep.")
      .def(nb::init<>())
      .def(
          "add_axis",
          [](SweepRequest& request, const std::string& text) {
            request.axes.push_back(cost::parse_axis(text));
          },
          "text"_a);
  nb::class_<LayoutSearchRequest, SweepRequest>(module, "LayoutSearchRequest", "The options of medley.plan_search.")
      .def(nb::init<>())
      .def_rw("gpus", &LayoutSearchRequest::gpus)
      .def_rw("most", &LayoutSearchRequest::most);
  module.def(
      "plan",
      [](const PlanRequest& request, const std::string& schedule) {
        const cost::PlanResult plan = cost::make_plan(request);
        if (!schedule.empty())
          core::write_file(schedule, [&](std::ostream& out) { out << text_of(cost::schedule_json(request, plan)); });
        return text_of(to_json(plan));
      },
      "request"_a, "schedule"_a, nb::call_guard<nb::gil_scoped_release>());
  bind_counting<SweepRequest>(module, "plan_sweep", cost::sweep_plans);
  bind_counting<LayoutSearchRequest>(module, "plan_search", cost::search_layouts);
}

void bind_shape(nb::module_& module) {
  using shape::Bounds, shape::CompareRequest, shape::LintRequest, shape::SearchRequest, shape::ShapeRequest;
  nb::class_<ShapeRequest>(module, "ShapeRequest", "The options of medley.shape.")
      .def(nb::init<>())
      .def_rw("model", &ShapeRequest::model)
      .def_rw("family", &ShapeRequest::as)
      .def_rw("gpu", &ShapeRequest::gpu)
      .def_rw("tp", &ShapeRequest::tp)
      .def_rw("pp", &ShapeRequest::pp)
      .def_rw("dp", &ShapeRequest::dp)
      .def_rw("zero", &ShapeRequest::zero)
      .def_rw("sp", &ShapeRequest::sp)
      .def_rw("micro_batch", &ShapeRequest::micro_batch)
      .def_rw("global_batch", &ShapeRequest::global_batch)
      .def_rw("seq", &ShapeRequest::seq)
      .def_rw("mode", &ShapeRequest::mode)
      .def_rw("attention", &ShapeRequest::attention)
      .def_rw("framework", &ShapeRequest::framework)
      .def_rw("compiled", &ShapeRequest::compiled)
      .def_rw("recompute", &ShapeRequest::recompute)
      .def_rw("dtype", &ShapeRequest::dtype);
  nb::class_<CompareRequest, ShapeRequest>(module, "CompareRequest", "The options of medley.shape_compare.")
      .def(nb::init<>())
      .def_rw("models", &CompareRequest::models)
      .def_rw("gpus", &CompareRequest::gpus);
  nb::class_<LintRequest, ShapeRequest>(module, "LintRequest", "The options of medley.lint.")
      .def(nb::init<>())
      .def_rw("allow", &LintRequest::allow);
  nb::class_<SearchRequest, ShapeRequest> search(module, "SearchRequest",
                                                 "The options of medley.shape_search.");
  search.def(nb::init<>()).def_rw("threads", &SearchRequest::threads);
  const auto add_bound = [&]<typename T>(const char* name, T Bounds::*member) {
    search.def_prop_rw(
        name, [member](const SearchRequest& request) { return request.bounds.*member; },
        [member](SearchRequest& request, T value) { request.bounds.*member = value; });
  };
  add_bound("params", &Bounds::parameters);
  add_bound("depth", &Bounds::depth);
  add_bound("aspect", &Bounds::aspect);
  add_bound("ffn_ratio", &Bounds::ffn_ratio);
  add_bound("hidden_step", &Bounds::hidden_step);
  add_bound("ffn_step", &Bounds::ffn_step);
  module.def(
      "shape", [](const ShapeRequest& request) { return text_of(to_json(shape::report_shape(request))); }, "request"_a,
      nb::call_guard<nb::gil_scoped_release>());
  module.def(
      "shape_compare", [](const CompareRequest& request) { return text_of(to_json(shape::compare_shapes(request))); },
      "request"_a, nb::call_guard<nb::gil_scoped_release>());
  module.def(
      "lint", [](const LintRequest& request) { return text_of(to_json(shape::lint_config(request))); }, "request"_a,
      nb::call_guard<nb::gil_scoped_release>());
  bind_counting<SearchRequest>(module, "shape_search", shape::search_shapes);
  module.def(
      "shape_gemm",
      [](const std::string& gpu, const std::string& file, const std::string& calibration, bool column_major, bool sustained) {
        return text_of(to_json(cost::gemm_times({gpu, file, calibration, column_major, sustained})));
      },
      "gpu"_a, "file"_a, "calibration"_a, "column_major"_a, "sustained"_a, nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace medley::python

NB_MODULE(_analysis, module) {
  module.doc() =
      "What the commands compute; use it through the functions of the package medley.";
  medley::python::bind_plan(module);
  medley::python::bind_shape(module);
  medley::python::bind_insight(module);
  medley::python::bind_ranks(module);
}
