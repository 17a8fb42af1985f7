// medley._core: contexts, works and errors for Python. The package's Python files put the user's names to
// them.
#include <medley/version.hpp>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "../error_class.hpp"
#include "comm.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace medley::python {
namespace {

void raise(const Error& error) {
  const ErrorContext& where = error.context();
  nb::object type = nb::module_::import_("medley.errors").attr(error_class(error.kind()));
  nb::object exception = type(nb::str(error.what()));
  exception.attr("op") = where.op ? nb::object(nb::str(std::string(name(*where.op)).c_str())) : nb::none();
  exception.attr("comm") = where.comm;
  exception.attr("sequence") = where.sequence ? nb::cast(*where.sequence) : nb::none();
  exception.attr("backend") = where.backend;
  exception.attr("ranks") = where.ranks;
  PyErr_SetObject(type.ptr(), exception.ptr());
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    try {
      raise(error);
    } catch (nb::python_error& other) {
      other.restore();
    }
  }
}

void bind_work(nb::module_& module) {
  nb::class_<WorkHandle>(module, "Work", "The handle of an operation issued with async_op=True.")
      .def(
          "wait",
          [](WorkHandle& w, std::optional<double> timeout) {
            const auto at_most =
                timeout ? std::chrono::nanoseconds(static_cast<std::int64_t>(*timeout * 1e9)) : forever;
            return wait(w.work, at_most);
          },
          "timeout"_a = nb::none(),
          "Waits until the operation is complete and raises its error. With a timeout in seconds: False when "
          "that "
          "passed first; the operation goes on.")
      .def(
          "test", [](WorkHandle& w) { return w.work.test(); }, nb::call_guard<nb::gil_scoped_release>(),
          "Whether the operation is complete; moves pending operations and never blocks. Raises its error.")
      .def_prop_ro(
          "complete", [](const WorkHandle& w) { return w.work.complete(); },
          "Whether it is complete, with or without an error; moves nothing.")
      .def_prop_ro(
          "source", [](const WorkHandle& w) { return w.work.source(); },
          "Of a completed receive: the rank the message came from.");
}

void bind_job(nb::module_& module) {
  nb::class_<Job>(module, "Job", "One rank's membership in a job: a context and what is pending in it.")
      .def(
          "__init__",
          [](Job* self, std::vector<std::string> backends, std::optional<double> deadline,
             bool progress_thread, bool exact) {
            ContextOptions options{.backends = std::move(backends)};
            options.exact = exact;
            if (deadline)
              options.deadline = std::chrono::nanoseconds(static_cast<std::int64_t>(*deadline * 1e9));
            if (progress_thread) options.progress_thread = UseThread::always;
            new (self) Job(options);
          },
          "backends"_a, "deadline"_a = nb::none(), "progress_thread"_a = false, "exact"_a = false)
      .def_prop_ro("rank", [](const Job& job) { return job.context.rank(); })
      .def_prop_ro("size", [](const Job& job) { return job.context.size(); })
      .def("synchronize", &Job::synchronize)
      .def("backends", [](const Job& job) {
        nb::list list;
        for (const BackendInfo& info : job.context.backends()) {
          nb::dict entry;
          entry["name"] = info.name;
          entry["version"] = info.version;
          entry["available"] = info.available;
          entry["reason"] = info.reason;
          list.append(entry);
        }
        return list;
      });
  module.def(
      "world",
      [](const std::shared_ptr<Job>& job) {
        return PyComm{job, job->context.world()};
      },
      "job"_a);
}

}  // namespace
}  // namespace medley::python

NB_MODULE(_core, module) {
  nb::set_leak_warnings(false);  // a job that was never finalized ends with the process
  module.doc() = "Medley's runtime for Python; use it through the functions of the package medley.";
  module.attr("__version__") = MEDLEY_VERSION_TEXT;
  nb::register_exception_translator(medley::python::translate);
  medley::python::bind_work(module);
  medley::python::bind_job(module);
  medley::python::bind_comm(module);
  medley::python::bind_scope(module);
}
