// medley.scope: names the part of a program that operations belong to.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

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

}  // namespace

void bind_scope(nb::module_& module) {
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
