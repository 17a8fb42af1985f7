// A medley::Error in the form in which torch passes it on to Python. torch's own code, such as autograd's
// engine below DDP, turns every exception that it does not know into a RuntimeError; of one of these it asks
// the class. Everything that this backend lets out to torch is one.
#pragma once

#include <torch/csrc/Exceptions.h>
#include <medley/error.hpp>

#include <memory>

namespace medley::torch {

class TorchError final : public ::torch::PyTorchError {
 public:
  explicit TorchError(const Error& error);
  const Error& error() const { return error_; }
  /// Called with Python's lock. torch instantiates what it gets with the message alone; this class then gives
  /// an instance of the class in medley.errors, with its attributes.
  PyObject* python_type() override;

 private:
  Error error_;
  std::shared_ptr<PyObject> type_;
};

/// The exception of medley.errors for it. Called with Python's lock.
pybind11::object python_exception(const Error& error);

/// Runs it; its errors become torch's.
template <typename Body>
decltype(auto) raising(Body&& body) {
  try {
    return body();
  } catch (const Error& error) {
    throw TorchError(error);
  }
}

}  // namespace medley::torch
