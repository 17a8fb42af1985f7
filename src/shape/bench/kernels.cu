#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>

#include "shape/bench/kernels.hpp"

namespace medley::shape::kernels {
namespace {

__device__ std::uint64_t mix(std::uint64_t x) {  // splitmix64: one independent value per element
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

__device__ float normal(std::uint64_t seed, std::uint64_t i) {
  const std::uint64_t bits = mix(seed ^ mix(i));
  const float u = (float(std::uint32_t(bits)) + 0.5f) * 0x1p-32f,
              v = float(std::uint32_t(bits >> 32)) * 0x1p-32f;
  return sqrtf(-2.f * logf(u)) * cospif(2.f * v);
}

template <typename T>
__global__ void fill_kernel(T* data, std::size_t count, std::uint64_t seed) {
  for (std::size_t i = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x; i < count;
       i += std::size_t(gridDim.x) * blockDim.x)
    data[i] = T(normal(seed, i));
}

__global__ void delay_kernel(std::uint64_t ns) {
  std::uint64_t start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - start < ns);
}

__global__ void clock_kernel(std::uint64_t ns, float* mhz) {
  std::uint64_t start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  const long long cycles = clock64();
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - start < ns);
  *mhz = float(clock64() - cycles) * 1000.f / float(now - start);
}

struct alignas(16) Eight {  // one 16-byte access
  __nv_bfloat162 pair[4];
};

__device__ float2 wide(const Eight& e, int i) {
  return __bfloat1622float2(e.pair[i]);
}

__global__ void add_kernel(const Eight* a, const Eight* b, Eight* out, std::size_t count) {
  const std::size_t i = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x;
  if (i >= count) return;
  const Eight x = a[i], y = b[i];
  Eight z;
  for (int j = 0; j < 4; ++j) z.pair[j] = __hadd2(x.pair[j], y.pair[j]);
  out[i] = z;
}

__device__ float block_sum(float value, float* scratch) {
  for (int step = 16; step; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
  __syncthreads();
  value = threadIdx.x < blockDim.x / 32 ? scratch[threadIdx.x] : 0.f;
  if (threadIdx.x < 32) {
    for (int step = 16; step; step /= 2) value += __shfl_xor_sync(~0u, value, step);
    if (threadIdx.x == 0) scratch[0] = value;
  }
  __syncthreads();
  value = scratch[0];
  __syncthreads();
  return value;
}

enum class Row { norm, norm_backward, softmax };

/// One block per row; the row stays in registers (at most `held` vectors of eight per thread), so it is read
/// once.
template <Row what, int held>
__global__ void row_kernel(const Eight* in, const Eight* gradient, Eight* out, int vectors, int cols) {
  __shared__ float scratch[32];
  const std::size_t row = std::size_t(blockIdx.x) * vectors;
  Eight x[held], g[held];
  float first = 0, second = 0;
  for (int h = 0; h < held; ++h) {
    const int i = h * blockDim.x + threadIdx.x;
    if (i >= vectors) break;
    x[h] = in[row + i];
    if (what == Row::norm_backward) g[h] = gradient[row + i];
    for (int j = 0; j < 4; ++j) {
      const float2 v = wide(x[h], j);
      if (what == Row::softmax) {
        first += __expf(v.x) + __expf(v.y);
      } else {
        first += v.x + v.y;
        second += v.x * v.x + v.y * v.y;
      }
    }
  }
  first = block_sum(first, scratch);
  if (what != Row::softmax) second = block_sum(second, scratch);
  const float mean = first / cols,
              scale = what == Row::softmax ? 1.f / first : rsqrtf(second / cols - mean * mean + 1e-5f);
  float dot = 0, sum = 0;
  if (what == Row::norm_backward) {
    for (int h = 0; h < held; ++h) {
      if (h * int(blockDim.x) + int(threadIdx.x) >= vectors) break;
      for (int j = 0; j < 4; ++j) {
        const float2 v = wide(x[h], j), d = wide(g[h], j);
        sum += d.x + d.y;
        dot += d.x * (v.x - mean) * scale + d.y * (v.y - mean) * scale;
      }
    }
    sum = block_sum(sum, scratch) / cols;
    dot = block_sum(dot, scratch) / cols;
  }
  for (int h = 0; h < held; ++h) {
    const int i = h * blockDim.x + threadIdx.x;
    if (i >= vectors) break;
    Eight y;
    for (int j = 0; j < 4; ++j) {
      const float2 v = wide(x[h], j);
      float2 r;
      if (what == Row::norm) r = {(v.x - mean) * scale, (v.y - mean) * scale};
      if (what == Row::softmax) r = {__expf(v.x) * scale, __expf(v.y) * scale};
      if (what == Row::norm_backward) {
        const float2 d = wide(g[h], j);
        r = {scale * (d.x - sum - (v.x - mean) * scale * dot),
             scale * (d.y - sum - (v.y - mean) * scale * dot)};
      }
      y.pair[j] = __float22bfloat162_rn(r);
    }
    out[row + i] = y;
  }
}

template <Row what>
void launch_rows(const void* in, const void* gradient, void* out, std::size_t rows, int cols,
                 cudaStream_t stream) {
  const int vectors = cols / 8;
  const int threads = std::min(1024, std::max(64, (vectors + 31) / 32 * 32));
  const auto grid = unsigned(rows);
  const auto* x = static_cast<const Eight*>(in);
  const auto* g = static_cast<const Eight*>(gradient);
  auto* y = static_cast<Eight*>(out);
  if (vectors <= threads)
    row_kernel<what, 1><<<grid, threads, 0, stream>>>(x, g, y, vectors, cols);
  else
    row_kernel<what, 4><<<grid, threads, 0, stream>>>(x, g, y, vectors, cols);  // up to 32768 columns
}

}  // namespace

void fill_normal(void* data, std::size_t elements, Fill type, std::uint64_t seed, cudaStream_t stream) {
  constexpr int blocks = 4096, threads = 256;
  if (type == Fill::bf16)
    fill_kernel<<<blocks, threads, 0, stream>>>(static_cast<__nv_bfloat16*>(data), elements, seed);
  if (type == Fill::fp16)
    fill_kernel<<<blocks, threads, 0, stream>>>(static_cast<__half*>(data), elements, seed);
  if (type == Fill::fp8)
    fill_kernel<<<blocks, threads, 0, stream>>>(static_cast<__nv_fp8_e4m3*>(data), elements, seed);
}

void delay(double us, cudaStream_t stream) {
  delay_kernel<<<1, 1, 0, stream>>>(std::uint64_t(us * 1000));
}

void read_clock(double us, float* mhz, cudaStream_t stream) {
  clock_kernel<<<1, 1, 0, stream>>>(std::uint64_t(us * 1000), mhz);
}

void add(const void* a, const void* b, void* out, std::size_t elements, cudaStream_t stream) {
  const std::size_t vectors = elements / 8;
  add_kernel<<<unsigned((vectors + 255) / 256), 256, 0, stream>>>(
      static_cast<const Eight*>(a), static_cast<const Eight*>(b), static_cast<Eight*>(out), vectors);
}

void layer_norm(const void* in, void* out, std::size_t rows, int cols, cudaStream_t stream) {
  launch_rows<Row::norm>(in, nullptr, out, rows, cols, stream);
}
void layer_norm_backward(const void* in, const void* gradient, void* out, std::size_t rows, int cols,
                         cudaStream_t stream) {
  launch_rows<Row::norm_backward>(in, gradient, out, rows, cols, stream);
}
void softmax(const void* in, void* out, std::size_t rows, int cols, cudaStream_t stream) {
  launch_rows<Row::softmax>(in, nullptr, out, rows, cols, stream);
}

}  // namespace medley::shape::kernels
