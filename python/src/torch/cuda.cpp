#include "cuda.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

namespace medley::torch {

void* stream_of(const at::Tensor& tensor) {
  if (!tensor.is_cuda()) return nullptr;
  const c10::impl::VirtualGuardImpl guard(tensor.device().type());
  return guard.getStreamNativeHandle(guard.getStream(tensor.device()));
}

void let_stream_wait(const std::vector<at::Tensor>& tensors) {
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.is_cuda()) continue;
    const c10::impl::VirtualGuardImpl guard(tensor.device().type());
    tensor.record_stream(guard.getStream(tensor.device()));
  }
}

std::vector<c10::Device> devices_of(const std::vector<at::Tensor>& tensors) {
  std::vector<c10::Device> devices;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.is_cuda() && std::find(devices.begin(), devices.end(), tensor.device()) == devices.end()) {
      devices.push_back(tensor.device());
    }
  }
  std::sort(devices.begin(), devices.end(),
            [](c10::Device a, c10::Device b) { return a.index() < b.index(); });
  return devices;
}

}  // namespace medley::torch
