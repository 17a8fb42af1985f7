// medley.scope: names the part of a program that operations belong to. medley.fuse: collects small collectives.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <medley/fuse.hpp>
#include <medley/scope.hpp>
#include <memory>

#include "comm.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace medley::python {
namespace {

/// One Scope for every open `with`; belongs to one thread, like Scope.
struct ScopeHandle {
  explicit ScopeHandle(std::string text) : name(std::move(text)) {}
  ScopeHandle(const ScopeHandle&) = delete;
  ScopeHandle& operator=(const ScopeHandle&) = delete;
  std::string name;
  std::vector<std::unique_ptr<Scope>> open;
};

/// One Fuse for every open `with`.
struct FuseHandle {
  explicit FuseHandle(PyComm of) : comm(std::move(of)) {}
  FuseHandle(const FuseHandle&) = delete;
  FuseHandle& operator=(const FuseHandle&) = delete;
  PyComm comm;
  std::vector<std::unique_ptr<Fuse>> open;
};

void bind_fuse(nb::module_& module) {
  nb::class_<FuseHandle>(module, "FuseScope", "What medley.fuse() returns: collects small collectives of a group.")
      .def(nb::init<PyComm>(), "group"_a)
      .def(
          "__enter__",
          [](FuseHandle& self) -> FuseHandle& {
            self.open.push_back(std::make_unique<Fuse>(self.comm.comm));
            return self;
          },
          nb::rv_policy::reference)
      .def("__exit__",
           [](FuseHandle& self, const nb::args&) {
             if (self.open.empty()) return;
             const nb::gil_scoped_release released;
             self.open.pop_back();
           })
      .def(
          "flush",
          [](FuseHandle& self) {
            if (!self.open.empty()) self.open.back()->flush();
          },
          nb::call_guard<nb::gil_scoped_release>(), "Issues what was collected so far.");
}

}  // namespace

void bind_scope(nb::module_& module) {
  bind_fuse(module);
  nb::class_<ScopeHandle>(
      module, "scope",
      "Operations issued by this thread inside `with medley.scope(\"forward/layer3.attention\"):` are "
      "recorded "
      "with that phase and module; `medley trace` shows them. Those under \"step\" stand between two steps.")
      .def(nb::init<std::string>(), "name"_a)
      .def(
          "__enter__",
          [](ScopeHandle& self) -> ScopeHandle& {
            self.open.push_back(std::make_unique<Scope>(self.name));
            return self;
          },
          nb::rv_policy::reference)
      .def("__exit__",
           [](ScopeHandle& self, const nb::args&) {
             if (!self.open.empty()) self.open.pop_back();
           })
      .def_ro("name", &ScopeHandle::name);
}

}  // namespace medley::python
