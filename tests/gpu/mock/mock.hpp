// The interface between the mocks of NCCL and CUDA, and the switches for tests.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>

namespace medley::mock {

/// Puts work into a stream.
void enqueue(cudaStream_t stream, std::function<void()> work);

/// The real location of the bytes at an address; null if the device cannot reach all of [address, address +
/// bytes). The host cannot touch the addresses of device memory: a program that tries dies.
std::byte* device_view(const void* address, std::size_t bytes);

}  // namespace medley::mock

/// From now on every communicator reports an error caused by its peers; 0 turns this off.
extern "C" void mock_nccl_async_error(int on);
// With MOCK_NCCL_WRONG=BYTES in the environment every collective of that size leaves one wrong element, for
// tests of programs that check.

/// How many launches continued on a thread of their own so far, in this process.
extern "C" int mock_nccl_background_launches();

/// The next communicators fail while connecting; 0 turns this off.
extern "C" void mock_nccl_fail_init(int on);
/// The result of cudaGetDeviceCount (1 at first); 0 makes it fail as if there were no driver.
extern "C" void mock_cuda_devices(int count);
