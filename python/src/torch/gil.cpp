#include "gil.hpp"

#include <torch/csrc/utils/pybind.h>

namespace medley::torch {

bool holds_gil() { return Py_IsInitialized() != 0 && PyGILState_Check() != 0; }

void without_gil(const std::function<void()>& body) {
  if (!holds_gil()) return body();
  const pybind11::gil_scoped_release released;
  body();
}

void check_signals() {
  if (Py_IsInitialized() == 0) return;
  const pybind11::gil_scoped_acquire acquired;
  if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
}

bool python_is_ending() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsInitialized() == 0 || Py_IsFinalizing() != 0;
#else
  return Py_IsInitialized() == 0 || _Py_IsFinalizing() != 0;
#endif
}

}  // namespace medley::torch
