#include "cuda.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace medley::torch {

void* handle_of(const c10::Stream& stream) {
  return c10::impl::VirtualGuardImpl(stream.device_type()).getStreamNativeHandle(stream);
}

c10::Stream current_stream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

c10::Stream side_stream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device, true);
}

void record_stream(const std::vector<at::Tensor>& tensors, const c10::Stream& stream) {
  const c10::impl::VirtualGuardImpl guard(stream.device_type());
  for (const at::Tensor& tensor : tensors) {
    if (tensor.is_cuda()) guard.recordDataPtrOnStream(tensor.storage().data_ptr(), stream);
  }
}

}  // namespace medley::torch
