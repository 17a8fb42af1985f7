// The little that CUDA tensors need beyond CPU ones: which stream an operation is ordered by, and what that
// stream has to be told. Written against torch's device-neutral interface, so that it builds with and without
// CUDA.
#pragma once

#include <ATen/ATen.h>

#include <vector>

namespace medley::torch {

/// The current stream of the tensor's device, as Options::stream wants it; null for CPU tensors.
void* stream_of(const at::Tensor& tensor);
/// Tells the allocator that the current stream uses memory which may have been made on another.
void let_stream_wait(const std::vector<at::Tensor>& tensors);
/// The CUDA devices of a future's value, in order.
std::vector<c10::Device> devices_of(const std::vector<at::Tensor>& tensors);

}  // namespace medley::torch
