// Shared by the files of medley._analysis: results as text, and Python's progress callbacks as hooks of long work.
#pragma once

#include <nanobind/nanobind.h>

#include <nlohmann/json.hpp>
#include <string>

namespace medley::python {

/// Names come from users' files and need not be UTF-8.
inline std::string text_of(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

/// Calls a Python function (or None) with what is done, of how much, and a word on it, from code that runs without the GIL. Throws
/// what Python raises, a KeyboardInterrupt among it. The function must outlive this object.
class Progress {
 public:
  explicit Progress(nanobind::handle callback) : callback_(callback) {}
  void operator()(double done, double of, const std::string& now = "") const {
    const nanobind::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
    if (!callback_.is_none()) callback_(done, of, now);
  }

 private:
  nanobind::handle callback_;
};

void bind_plan(nanobind::module_& module);
void bind_shape(nanobind::module_& module);
void bind_insight(nanobind::module_& module);
void bind_ranks(nanobind::module_& module);

}  // namespace medley::python
