// Streams of CUDA devices, through torch's device-neutral interface, so that this builds with or without
// CUDA.
#pragma once

#include <ATen/ATen.h>

#include <vector>

namespace medley::torch {

/// In the form of Options::stream and Work::wait_in.
void* handle_of(const c10::Stream& stream);
c10::Stream current_stream(c10::Device device);
/// A stream of torch's pool, for work after operations that must not delay the program's own streams.
c10::Stream side_stream(c10::Device device);
/// The allocator does not reuse the memory of these tensors before the stream's current work is done.
void record_stream(const std::vector<at::Tensor>& tensors, const c10::Stream& stream);

}  // namespace medley::torch
