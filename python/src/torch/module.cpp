// medley.torch._c10d: makes process groups for torch.distributed.
#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

#include "backend.hpp"
#include "callback_threads.hpp"
#include "compression.hpp"
#include "routes.hpp"
#include "torch_error.hpp"

namespace py = pybind11;

namespace medley::torch {
namespace {

void raise(const Error& error) {
  const py::object exception = python_exception(error);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
}

void translate(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const Error& error) {
    raise(error);
  } catch (const TorchError& error) {
    raise(error.error());
  }
}

c10::intrusive_ptr<c10d::Backend> create(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                         const std::string& name, const std::vector<int>& global_ranks,
                                         double timeout, const c10::intrusive_ptr<GroupOptions>& options,
                                         int device) {
  const Membership membership{.store = store,
                              .rank = rank,
                              .size = size,
                              .name = name,
                              .global_ranks = global_ranks,
                              .timeout = std::chrono::milliseconds(static_cast<std::int64_t>(timeout * 1e3)),
                              .backends = {},
                              .rules = {},
                              .device = device};
  return c10::make_intrusive<TorchBackend>(membership, options);
}

}  // namespace
}  // namespace medley::torch

PYBIND11_MODULE(_c10d, module) {
  using namespace medley::torch;
  module.doc() = "Medley's backend for torch.distributed; import medley.torch registers it.";
  py::register_exception_translator(translate);

  py::module_::import("torch.distributed");  // defines the base classes
  const py::object base = py::module_::import("torch._C._distributed_c10d").attr("Backend");

  py::class_<GroupOptions, c10d::Backend::Options, c10::intrusive_ptr<GroupOptions>>(
      module, "Options",
      "What a process group is asked for: pg_options=medley.torch.Options(rules=\"all_to_all=mpi\").")
      .def(py::init([](std::string rules, std::vector<std::string> backends, std::string algorithm,
                       bool deterministic, bool exact) {
             with_v_forms(rules);  // rejected here, where the program gives them
             auto options = c10::make_intrusive<GroupOptions>();
             options->rules = std::move(rules);
             options->backends = std::move(backends);
             options->algorithm = std::move(algorithm);
             options->deterministic = deterministic;
             options->exact = exact;
             return options;
           }),
           py::kw_only(), py::arg("rules") = "", py::arg("backends") = std::vector<std::string>{},
           py::arg("algorithm") = "", py::arg("deterministic") = false, py::arg("exact") = true)
      .def_readwrite("rules", &GroupOptions::rules)
      .def_readwrite("backends", &GroupOptions::backends)
      .def_readwrite("algorithm", &GroupOptions::algorithm)
      .def_readwrite("deterministic", &GroupOptions::deterministic)
      .def_readwrite("exact", &GroupOptions::exact)
      .def("__copy__", [](const GroupOptions& self) { return c10::make_intrusive<GroupOptions>(self); })
      .def("__deepcopy__",
           [](const GroupOptions& self, const py::dict&) { return c10::make_intrusive<GroupOptions>(self); });

  py::class_<TorchBackend, c10d::Backend, c10::intrusive_ptr<TorchBackend>>(module, "ProcessGroupMedley")
      .def_property_readonly("options", &TorchBackend::getBackendOptions)
      .def(
          "perform_nocolor_split", [](const TorchBackend&, const py::object&) {}, py::arg("device"),
          "torch calls it on the ranks outside a new group, which take no part in making it.");

  module.def("create", &create, py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("name"),
             py::arg("global_ranks"), py::arg("timeout"), py::arg("options"), py::arg("device") = 0,
             py::call_guard<py::gil_scoped_release>());
  module.def("wait_for_callbacks", &wait_for_callbacks, py::arg("at_most"),
             py::call_guard<py::gil_scoped_release>());
  module.def("push_route", &push_route, py::arg("rules"));
  module.def("pop_route", &pop_route);
  py::class_<medley::ErrorFeedback, std::shared_ptr<medley::ErrorFeedback>>(
      module, "ErrorFeedback", "What lossy compression left out of one tensor so far, to be sent with its next values.")
      .def(py::init<>())
      .def("__len__", &medley::ErrorFeedback::count)
      .def("reset", &medley::ErrorFeedback::reset);
  module.def("push_compression", &push_compression, py::arg("codec"), py::arg("feedback"));
  module.def("pop_compression", &pop_compression);
}
