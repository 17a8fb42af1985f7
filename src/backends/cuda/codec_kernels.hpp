// Kernels that compress on the device (medley/sdk/device_codec.hpp). The device plugin calls them; they only enqueue.
#pragma once

#include <cuda_runtime_api.h>

#include <medley/sdk/device_codec.hpp>

namespace medley::cuda {

/// Loads the kernels, so that no later launch has to load one, which could wait for a running kernel.
void preload_codecs();

void encode(const DeviceFrame& frame, const void* elements, float* residual, cudaStream_t stream);
void decode(const DeviceFrame& frame, void* elements, cudaStream_t stream);
void combine(const DeviceReduction& reduction, cudaStream_t stream);

}  // namespace medley::cuda
