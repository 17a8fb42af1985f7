// A medley::Error in the form in which torch passes it on to Python. torch's own code, such as autograd's
// engine below DDP, turns unknown exceptions into RuntimeError, but asks exceptions of this type for their
// class. Everything that this backend throws to torch is one.
#pragma once

#include <torch/csrc/Exceptions.h>
#include <medley/error.hpp>

#include <memory>

namespace medley::torch {

class TorchError final : public ::torch::PyTorchError {
 public:
  explicit TorchError(const Error& error);
  /// With this sentence instead of the error's in the words of torch.
  TorchError(const Error& error, const std::string& sentence);
  const Error& error() const { return error_; }
  /// Called with the GIL. torch instantiates the returned class with the message alone; the class then gives
  /// an instance of the class in medley.errors, with its attributes.
  PyObject* python_type() override;

 private:
  Error error_;
  std::shared_ptr<PyObject> type_;
};

/// The corresponding exception of medley.errors, in the words of torch. Called with the GIL.
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

/// Throws Error(invalid) with this sentence, which names the function of torch, unless the condition holds.
template <typename... Parts>
void require(bool holds, const Parts&... sentence) {
  if (!holds) [[unlikely]]
    throw TorchError(Error(ErrorKind::invalid, c10::str(sentence...)));
}

}  // namespace medley::torch
