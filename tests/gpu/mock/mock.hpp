// What the mock of NCCL needs of the mock of CUDA, and what tests tell them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>

namespace medley::mock {

/// Puts work into a stream.
void enqueue(cudaStream_t stream, std::function<void()> work);

/// Where the bytes behind an address really are; null if [address, address + bytes) is not memory that the device can
/// reach. Device memory has addresses that the host cannot touch, so that a program that tries dies.
std::byte* device_view(const void* address, std::size_t bytes);

}  // namespace medley::mock

/// From now on every communicator reports an error that its peers caused; 0 ends it.
extern "C" void mock_nccl_async_error(int on);
// With MOCK_NCCL_WRONG=BYTES in the environment every collective of so many bytes leaves one wrong element, for tests of
// programs that check.

/// The next communicators fail while they connect; 0 ends it.
extern "C" void mock_nccl_fail_init(int on);
/// What cudaGetDeviceCount finds (1 at first); 0 makes it fail as without a driver.
extern "C" void mock_cuda_devices(int count);
