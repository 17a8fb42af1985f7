// The part of the CUDA runtime that Medley uses, declared for the mock, so that the logic of the nccl backend
// and of staging compiles and runs on machines without CUDA. Same names and meanings as NVIDIA's header.
#pragma once

#include <cstddef>

extern "C" {

enum cudaError_t : int {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorNotReady = 600,
};
enum cudaMemcpyKind : int { cudaMemcpyDeviceToDevice = 3, cudaMemcpyDefault = 4 };
enum cudaStreamCaptureMode : int { cudaStreamCaptureModeGlobal = 0, cudaStreamCaptureModeRelaxed = 2 };
enum cudaStreamCaptureStatus : int { cudaStreamCaptureStatusNone = 0, cudaStreamCaptureStatusActive = 1 };
enum : unsigned {
  cudaStreamNonBlocking = 1,
  cudaEventDefault = 0,
  cudaEventDisableTiming = 2,
  cudaHostAllocPortable = 1
};
struct cudaDeviceProp {
  char name[256];
};
typedef struct MockStream* cudaStream_t;
typedef struct MockEvent* cudaEvent_t;
typedef void (*cudaHostFn_t)(void*);

cudaError_t cudaGetLastError();
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device);
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest);
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode);

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data);

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end);

cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned flags);
cudaError_t cudaMalloc(void** memory, size_t bytes);
cudaError_t cudaFree(void* memory);
cudaError_t cudaMallocAsync(void** memory, size_t bytes, cudaStream_t stream);
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream);
}
