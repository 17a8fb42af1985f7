#include "backends/nccl/combine.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <limits>
#include <medley/error.hpp>
#include <string>

namespace medley::nccl {
namespace {

/// How an element is stored, and the type it is computed in.
template <class Stored, class Wide>
struct Plain {
  static __device__ Wide widen(Stored value) { return value; }
  static __device__ Stored narrow(Wide value) { return static_cast<Stored>(value); }
};
struct F16 {
  static __device__ float widen(__half value) { return __half2float(value); }
  static __device__ __half narrow(float value) { return __float2half_rn(value); }
};
struct Bf16 {
  static __device__ float widen(__nv_bfloat16 value) { return __bfloat162float(value); }
  static __device__ __nv_bfloat16 narrow(float value) { return __float2bfloat16_rn(value); }
};
struct Truth {
  static __device__ unsigned char widen(unsigned char value) { return value != 0; }
  static __device__ unsigned char narrow(unsigned char value) { return value; }
};

template <class W>
__device__ W combine_floats(W a, W b, ReduceOp op) {
  const bool a_first = a < b || (a == b && signbit(a));
  switch (op) {
    case ReduceOp::product: return a * b;
    case ReduceOp::min: return isnan(a) || isnan(b) ? a + b : a_first ? a : b;
    case ReduceOp::max: return isnan(a) || isnan(b) ? a + b : a_first ? b : a;
    default: return a + b;
  }
}

template <class W>
__device__ W combine_integers(W a, W b, ReduceOp op) {
  using U = unsigned long long;
  switch (op) {
    case ReduceOp::product: return static_cast<W>(static_cast<U>(a) * static_cast<U>(b));
    case ReduceOp::min: return a < b ? a : b;
    case ReduceOp::max: return a < b ? b : a;
    case ReduceOp::band: return static_cast<W>(a & b);
    case ReduceOp::bor: return static_cast<W>(a | b);
    case ReduceOp::bxor: return static_cast<W>(a ^ b);
    default: return static_cast<W>(static_cast<U>(a) + static_cast<U>(b));
  }
}

template <class Type, class Stored, class Wide, bool floating>
__global__ void combine_kernel(Stored* out, const Stored* parts, int ranks, std::int64_t stride, std::int64_t count,
                               ReduceOp op) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    if (floating && ranks == 1) {   // bit for bit
      out[i] = parts[i];
      continue;
    }
    Wide value = Type::widen(parts[i]);
    for (int r = 1; r < ranks; ++r) {
      const Wide next = Type::widen(parts[r * stride + i]);
      if constexpr (floating) {
        value = combine_floats<Wide>(value, next, op);
      } else {
        value = combine_integers<Wide>(value, next, op);
      }
    }
    if constexpr (floating) {
      if (op == ReduceOp::avg) value /= static_cast<Wide>(ranks);
    }
    out[i] = Type::narrow(value);
  }
}

/// Calls visit(kernel, element) with the kernel for a type.
template <class Visit>
void with_kernel(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::f64: return visit(combine_kernel<Plain<double, double>, double, double, true>, double{});
    case DType::f32: return visit(combine_kernel<Plain<float, float>, float, float, true>, float{});
    case DType::f16: return visit(combine_kernel<F16, __half, float, true>, __half{});
    case DType::bf16: return visit(combine_kernel<Bf16, __nv_bfloat16, float, true>, __nv_bfloat16{});
    case DType::i64: return visit(combine_kernel<Plain<long long, long long>, long long, long long, false>, 0LL);
    case DType::i32: return visit(combine_kernel<Plain<int, int>, int, int, false>, int{});
    case DType::i16: return visit(combine_kernel<Plain<short, short>, short, short, false>, short{});
    case DType::i8: return visit(combine_kernel<Plain<signed char, signed char>, signed char, signed char, false>,
                                 static_cast<signed char>(0));
    case DType::u8:
      return visit(combine_kernel<Plain<unsigned char, unsigned char>, unsigned char, unsigned char, false>,
                   static_cast<unsigned char>(0));
    case DType::boolean:
      return visit(combine_kernel<Truth, unsigned char, unsigned char, false>, static_cast<unsigned char>(0));
  }
}

/// bool reductions, in NCCL and here: sum and max are or, product and min are and.
ReduceOp of_truth(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum: return ReduceOp::bor;
    case ReduceOp::product: return ReduceOp::band;
    default: return op;
  }
}

void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  cudaGetLastError();
  throw Error(ErrorKind::system, std::string(what) + " failed: " + cudaGetErrorString(result));
}

}  // namespace

void preload_combine() {
  for (int t = 0; t < dtype_count; ++t) {
    with_kernel(static_cast<DType>(t), [](auto* kernel, auto) {
      cudaFuncAttributes attributes{};
      check(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
    });
  }
}

void combine(void* out, const void* parts, int ranks, std::int64_t stride, std::int64_t count, DType dtype, ReduceOp op,
             cudaStream_t stream) {
  if (count == 0) return;
  if (dtype == DType::boolean) op = of_truth(op);
  constexpr int threads = 256;
  const auto blocks = static_cast<unsigned>(std::min<std::int64_t>((count + threads - 1) / threads, 512));
  with_kernel(dtype, [&](auto* kernel, auto element) {
    using Stored = decltype(element);
    kernel<<<blocks, threads, 0, stream>>>(static_cast<Stored*>(out), static_cast<const Stored*>(parts), ranks, stride,
                                           count, op);
  });
  check(cudaGetLastError(), "launching a kernel");
}

}  // namespace medley::nccl
