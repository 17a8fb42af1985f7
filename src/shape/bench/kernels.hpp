// The few CUDA kernels that the bench needs besides cuBLASLt: random data, a delay, and memory-bound
// operations. Called by gpu_bench.cpp; every function only launches on `stream`.
#pragma once

#include <cstddef>
#include <cstdint>

struct CUstream_st;

namespace medley::shape::kernels {

/// Standard normal values; `bytes` of bf16, fp16 or fp8 (e4m3) elements. Zeros would draw less power and run
/// faster.
enum class Fill : std::uint8_t { bf16, fp16, fp8 };
void fill_normal(void* data, std::size_t elements, Fill type, std::uint64_t seed, CUstream_st* stream);
/// Keeps the stream busy for about `us`, so that the launches queued behind it run without gaps.
void delay(double us, CUstream_st* stream);
/// Writes the SM clock over about `us`, in MHz, to device memory: power limits change it by a fifth between
/// measurements.
void read_clock(double us, float* mhz, CUstream_st* stream);
/// out = a + b, bf16.
void add(const void* a, const void* b, void* out, std::size_t elements, CUstream_st* stream);
/// Row-wise layer norm of rows×cols bf16, its gradient with respect to the input, and softmax.
void layer_norm(const void* in, void* out, std::size_t rows, int cols, CUstream_st* stream);
void layer_norm_backward(const void* in, const void* gradient, void* out, std::size_t rows, int cols,
                         CUstream_st* stream);
void softmax(const void* in, void* out, std::size_t rows, int cols, CUstream_st* stream);

}  // namespace medley::shape::kernels
