// Streams of CUDA devices, through torch's device-neutral interface, so that this builds with and without
// CUDA.
#pragma once

#include <ATen/ATen.h>

#include <vector>

namespace medley::torch {

/// As Options::stream and Work::wait_in want it.
void* handle_of(const c10::Stream& stream);
c10::Stream current_stream(c10::Device device);
/// A stream of torch's pool, for what follows operations without holding up the program's own streams.
c10::Stream side_stream(c10::Device device);
/// The memory of these tensors is not given out again before what the stream has been told by then is done.
void record_stream(const std::vector<at::Tensor>& tensors, const c10::Stream& stream);

}  // namespace medley::torch
