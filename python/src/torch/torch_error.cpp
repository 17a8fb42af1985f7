#include "torch_error.hpp"

#include "../error_class.hpp"
#include "gil.hpp"

namespace medley::torch {
namespace {

namespace py = pybind11;

/// In the words of torch.
std::string sentence_of(const Error& error) {
  std::string sentence = error.what();
  constexpr std::string_view ours = "destroyed the comm or its context", torchs = "called destroy_process_group";
  if (const auto at = sentence.find(ours); at != sentence.npos) sentence.replace(at, ours.size(), torchs);
  if (error.kind() == ErrorKind::timeout) sentence += " (see the timeout of init_process_group and new_group)";
  return sentence;
}

/// The last copy of an exception may be destroyed on any thread, and after the interpreter has ended.
void drop_type(PyObject* type) {
  if (python_is_ending()) return;
  const py::gil_scoped_acquire acquired;
  Py_DECREF(type);
}

py::object exception_saying(const std::string& sentence, const Error& error) {
  const ErrorContext& where = error.context();
  const py::object type = py::module_::import("medley.errors").attr(python::error_class(error.kind()));
  py::object exception = type(sentence);
  exception.attr("op") = where.op ? py::object(py::str(std::string(name(*where.op)))) : py::none();
  exception.attr("comm") = where.comm;
  exception.attr("sequence") = where.sequence ? py::object(py::int_(*where.sequence)) : py::none();
  exception.attr("backend") = where.backend;
  exception.attr("ranks") = py::cast(where.ranks);
  return exception;
}

}  // namespace

py::object python_exception(const Error& error) { return exception_saying(sentence_of(error), error); }

TorchError::TorchError(const Error& error) : TorchError(error, sentence_of(error)) {}

TorchError::TorchError(const Error& error, const std::string& sentence) : PyTorchError(sentence), error_(error) {}

PyObject* TorchError::python_type() {
  if (!type_) {
    try {
      py::object made = py::module_::import("medley.errors").attr("_class_giving")(exception_saying(what(), error_));
      type_ = std::shared_ptr<PyObject>(made.release().ptr(), drop_type);
    } catch (py::error_already_set&) {
      return PyExc_RuntimeError;  // the message is still right
    }
  }
  return type_.get();
}

}  // namespace medley::torch
