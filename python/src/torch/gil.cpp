#include "gil.hpp"

#include <torch/csrc/utils/pybind.h>

namespace medley::torch {

void without_gil(const std::function<void()>& body) {
  if (Py_IsInitialized() == 0 || PyGILState_Check() == 0) return body();
  const pybind11::gil_scoped_release released;
  body();
}

void check_signals() {
  if (Py_IsInitialized() == 0) return;
  const pybind11::gil_scoped_acquire acquired;
  if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
}

}  // namespace medley::torch
