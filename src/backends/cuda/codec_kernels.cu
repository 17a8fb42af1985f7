// A warp encodes or decodes a tile of 256 values, eight in each lane: one block of 256, or four of 64. Frames may be in pinned host memory:
// a warp's stores are then whole 128-byte lines, which cross the bus without a copy in device memory.
#include "backends/cuda/codec_kernels.hpp"

#include <medley/error.hpp>
#include <string>
#include <type_traits>

#include "backends/cuda/block_codec.hpp"

namespace medley::cuda {
namespace {

constexpr int tile = 256, lanes = 32, warps = 8;

/// Which eight values of its tile a lane has: four in the first half of a block and four in the second, so that it packs whole words.
template <class Format>
struct Place {
  std::int64_t block;   ///< the first value of the lane's block
  int low;              ///< of the lane's first four values in the block; the other four are half a block later
  __device__ explicit Place(std::int64_t begin) {
    constexpr int per_block = Format::block / 8;
    const int lane = static_cast<int>(threadIdx.x) % lanes;
    block = begin + lane / per_block * Format::block;
    low = lane % per_block * 4;
  }
  __device__ std::int64_t at(int i) const { return block + low + (i < 4 ? i : Format::block / 2 + i - 4); }
  __device__ bool leads() const { return low == 0; }
};

template <class Word>
__device__ bool aligned(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % sizeof(Word) == 0;
}

/// Four elements from `at` on; zeros beyond `count`.
template <class Element>
__device__ void load4(const void* elements, std::int64_t at, std::int64_t count, float* values) {
  using Stored = typename Element::Stored;
  struct alignas(4 * sizeof(Stored)) Word { Stored part[4]; };
  const auto* from = static_cast<const Stored*>(elements) + at;
  if (at + 4 <= count && aligned<Word>(from)) {
    const Word word = *reinterpret_cast<const Word*>(from);
    for (int i = 0; i < 4; ++i) values[i] = Element::widen(word.part[i]);
    return;
  }
  for (int i = 0; i < 4; ++i) values[i] = at + i < count ? Element::widen(from[i]) : 0;
}
template <class Element>
__device__ void store4(void* elements, std::int64_t at, std::int64_t count, const float* values) {
  using Stored = typename Element::Stored;
  struct alignas(4 * sizeof(Stored)) Word { Stored part[4]; };
  auto* to = static_cast<Stored*>(elements) + at;
  if (at + 4 <= count && aligned<Word>(to)) {
    Word word;
    for (int i = 0; i < 4; ++i) word.part[i] = Element::narrow(values[i]);
    *reinterpret_cast<Word*>(to) = word;
    return;
  }
  for (int i = 0; i < 4; ++i) {
    if (at + i < count) to[i] = Element::narrow(values[i]);
  }
}

/// Codes of one width, four at a time, from byte `at` of a frame on; those of values beyond `count` take no bytes.
template <class Code>
__device__ void store_codes(std::byte* to, const std::uint32_t* codes, std::int64_t left) {
  struct alignas(4 * sizeof(Code)) Word { Code part[4]; };
  if (left >= 4 && aligned<Word>(to)) {
    Word word;
    for (int i = 0; i < 4; ++i) word.part[i] = static_cast<Code>(codes[i]);
    *reinterpret_cast<Word*>(to) = word;
    return;
  }
  for (int i = 0; i < 4 && i < left; ++i) reinterpret_cast<Code*>(to)[i] = static_cast<Code>(codes[i]);
}
template <class Code>
__device__ void load_codes(const std::byte* from, std::uint32_t* codes, std::int64_t left) {
  struct alignas(4 * sizeof(Code)) Word { Code part[4]; };
  if (left >= 4 && aligned<Word>(from)) {
    const Word word = *reinterpret_cast<const Word*>(from);
    for (int i = 0; i < 4; ++i) codes[i] = word.part[i];
    return;
  }
  for (int i = 0; i < 4; ++i) codes[i] = i < left ? reinterpret_cast<const Code*>(from)[i] : 0;
}

template <class Format>
__device__ void write_codes(std::byte* chunks, const Layout<Format>& layout, const Place<Format>& place, const std::uint32_t* codes) {
  if (place.block >= layout.count) return;
  std::byte* const to = chunks + layout.codes_at(place.block);
  if constexpr (Format::nibbles) {   // a short last block has all its bytes, since each holds two distant values
    std::uint32_t both[4];
    for (int i = 0; i < 4; ++i) both[i] = codes[i] | codes[i + 4] << 4;
    store_codes<std::uint8_t>(to + place.low, both, 4);
  } else {
    using Code = std::conditional_t<Format::scaled, std::uint8_t, std::uint16_t>;
    store_codes<Code>(to + place.low * sizeof(Code), codes, layout.count - place.at(0));
    store_codes<Code>(to + (place.low + Format::block / 2) * sizeof(Code), codes + 4, layout.count - place.at(4));
  }
}
template <class Format>
__device__ void read_codes(const std::byte* chunks, const Layout<Format>& layout, const Place<Format>& place, std::uint32_t* codes) {
  const std::byte* const from = chunks + layout.codes_at(place.block);
  if constexpr (Format::nibbles) {
    std::uint32_t both[4];
    load_codes<std::uint8_t>(from + place.low, both, 4);
    for (int i = 0; i < 4; ++i) codes[i] = both[i] & 15u, codes[i + 4] = both[i] >> 4;
  } else {
    using Code = std::conditional_t<Format::scaled, std::uint8_t, std::uint16_t>;
    load_codes<Code>(from + place.low * sizeof(Code), codes, layout.count - place.at(0));
    load_codes<Code>(from + (place.low + Format::block / 2) * sizeof(Code), codes + 4, layout.count - place.at(4));
  }
}

/// Encodes a lane's eight values, together with the other lanes of its block. With a residual: see with_residual().
template <class Format>
__device__ void encode_tile(std::byte* chunks, const Layout<Format>& layout, const Place<Format>& place, float* values, float* residual) {
  if (residual) {
    float left[8];
    load4<Single>(residual, place.at(0), layout.count, left);
    load4<Single>(residual, place.at(4), layout.count, left + 4);
    for (int i = 0; i < 8; ++i) values[i] = with_residual(values[i], left[i]);
  }
  Scale scale;
  if constexpr (Format::scaled) {
    std::uint32_t largest = 0;
    for (int i = 0; i < 8; ++i) largest = ::max(largest, magnitude(values[i]));
    for (int step = Format::block / 16; step > 0; step /= 2) largest = ::max(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, step));
    scale = scale_of<Format>(largest);
    if (place.leads() && place.block < layout.count) *reinterpret_cast<float*>(chunks + layout.scale_at(place.block)) = scale.scale;
  }
  std::uint32_t codes[8];
  for (int i = 0; i < 8; ++i) codes[i] = code_of<Format>(values[i], scale);
  write_codes(chunks, layout, place, codes);
  if (!residual) return;
  for (int i = 0; i < 8; ++i) values[i] = lost(values[i], value_of<Format>(codes[i], scale.scale));
  store4<Single>(residual, place.at(0), layout.count, values);
  store4<Single>(residual, place.at(4), layout.count, values + 4);
}

template <class Format>
__device__ void decode_tile(const std::byte* chunks, const Layout<Format>& layout, const Place<Format>& place, float* values) {
  if (place.block >= layout.count) {
    for (int i = 0; i < 8; ++i) values[i] = 0;
    return;
  }
  std::uint32_t codes[8];
  read_codes(chunks, layout, place, codes);
  float scale = 1;
  if constexpr (Format::scaled) scale = *reinterpret_cast<const float*>(chunks + layout.scale_at(place.block));
  for (int i = 0; i < 8; ++i) values[i] = value_of<Format>(codes[i], scale);
}

__device__ std::int64_t first_of_tile() { return (static_cast<std::int64_t>(blockIdx.x) * warps + threadIdx.x / lanes) * tile; }

template <class Format, class Element>
__global__ void __launch_bounds__(warps * lanes) encode_kernel(DeviceFrame frame, const void* elements, float* residual) {
  if (first_of_tile() >= frame.count) return;   // a whole warp
  const Place<Format> place(first_of_tile());
  float values[8];
  load4<Element>(elements, place.at(0), frame.count, values);
  load4<Element>(elements, place.at(4), frame.count, values + 4);
  encode_tile<Format>(frame.chunks, {frame.count}, place, values, residual);
}

template <class Format, class Element>
__global__ void __launch_bounds__(warps * lanes) decode_kernel(DeviceFrame frame, void* elements) {
  if (first_of_tile() >= frame.count) return;
  const Place<Format> place(first_of_tile());
  float values[8];
  decode_tile<Format>(frame.chunks, {frame.count}, place, values);
  for (float& value : values) value = Element::saturate(value);
  store4<Element>(elements, place.at(0), frame.count, values);
  store4<Element>(elements, place.at(4), frame.count, values + 4);
}

template <class Format, class Element>
__global__ void __launch_bounds__(warps * lanes) combine_kernel(DeviceReduction job) {
  const std::int64_t count = job.first.count;
  if (first_of_tile() >= count) return;
  const Place<Format> place(first_of_tile());
  float values[8];
  const std::byte* frame = job.first.chunks;
  for (int r = 0; r < job.ranks; ++r) {
    float next[8];
    if (r == job.rank) {
      load4<Element>(job.own, place.at(0), count, next);
      load4<Element>(job.own, place.at(4), count, next + 4);
    } else {
      decode_tile<Format>(frame, {count}, place, next);
      frame += job.stride;
    }
    for (int i = 0; i < 8; ++i) values[i] = r == 0 ? next[i] : combined(values[i], next[i], job.op);
  }
  for (float& value : values) value = finished(value, job.op, job.ranks);
  if (job.elements) {
    store4<Element>(job.elements, place.at(0), count, values);
    store4<Element>(job.elements, place.at(4), count, values + 4);
    return;
  }
  // Rounded to the type first: what overflows it is infinite, as without compression.
  for (float& value : values) value = Element::widen(Element::narrow(value));
  encode_tile<Format>(job.chunks, {count}, place, values, job.residual);
}

void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  cudaGetLastError();
  throw Error(ErrorKind::system, std::string(what) + " failed: " + cudaGetErrorString(result));
}

template <class Format, class Visit>
void with_element(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::f16: return visit(Format{}, Half{});
    case DType::bf16: return visit(Format{}, Brain{});
    default: return visit(Format{}, Single{});
  }
}
/// Calls `visit(Format, Element)`.
template <class Visit>
void with_types(BlockCodec codec, DType dtype, Visit visit) {
  switch (codec) {
    case BlockCodec::bf16: return with_element<Bf16>(dtype, visit);
    case BlockCodec::fp8_e4m3: return with_element<E4m3>(dtype, visit);
    case BlockCodec::fp8_e5m2: return with_element<E5m2>(dtype, visit);
    case BlockCodec::int8: return with_element<Int8>(dtype, visit);
    case BlockCodec::int4: return with_element<Int4>(dtype, visit);
  }
}

unsigned blocks_of(std::int64_t count) { return static_cast<unsigned>((count + tile * warps - 1) / (tile * warps)); }

}  // namespace

void preload_codecs() {
  const auto load = [](auto* kernel) {
    cudaFuncAttributes attributes{};
    check(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
  };
  for (const BlockCodec codec : {BlockCodec::bf16, BlockCodec::fp8_e4m3, BlockCodec::fp8_e5m2, BlockCodec::int8, BlockCodec::int4}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      with_types(codec, dtype, [&](auto format, auto element) {
        load(encode_kernel<decltype(format), decltype(element)>);
        load(decode_kernel<decltype(format), decltype(element)>);
        load(combine_kernel<decltype(format), decltype(element)>);
      });
    }
  }
}

void encode(const DeviceFrame& frame, const void* elements, float* residual, cudaStream_t stream) {
  if (frame.count == 0) return;
  with_types(frame.codec, frame.dtype, [&](auto format, auto element) {
    encode_kernel<decltype(format), decltype(element)><<<blocks_of(frame.count), warps * lanes, 0, stream>>>(frame, elements, residual);
  });
  check(cudaGetLastError(), "launching a kernel");
}

void decode(const DeviceFrame& frame, void* elements, cudaStream_t stream) {
  if (frame.count == 0) return;
  with_types(frame.codec, frame.dtype, [&](auto format, auto element) {
    decode_kernel<decltype(format), decltype(element)><<<blocks_of(frame.count), warps * lanes, 0, stream>>>(frame, elements);
  });
  check(cudaGetLastError(), "launching a kernel");
}

void combine(const DeviceReduction& reduction, cudaStream_t stream) {
  if (reduction.first.count == 0) return;
  with_types(reduction.first.codec, reduction.first.dtype, [&](auto format, auto element) {
    combine_kernel<decltype(format), decltype(element)><<<blocks_of(reduction.first.count), warps * lanes, 0, stream>>>(reduction);
  });
  check(cudaGetLastError(), "launching a kernel");
}

}  // namespace medley::cuda
