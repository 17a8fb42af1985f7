// The device plugin's kernels of compression, as work of the mock's streams: the kernels' own arithmetic
// (block_codec.hpp), value by value.
#include "backends/cuda/codec_kernels.hpp"

#include <algorithm>
#include <vector>

#include "backends/cuda/block_codec.hpp"
#include "mock.hpp"

namespace medley::cuda {
namespace {

template <class Format>
std::int64_t bytes_of(std::int64_t count) {
  const Layout<Format> layout{count};
  if (count == 0) return 0;
  const std::int64_t last = (count - 1) / Format::block * Format::block, left = count - last;
  return layout.codes_at(last) + (Format::nibbles ? Layout<Format>::block_bytes : left * (Format::scaled ? 1 : 2));
}

/// Where the device sees memory: the host cannot touch it there.
template <class T>
T* view(const T* address, std::int64_t count) {
  return reinterpret_cast<T*>(mock::device_view(address, static_cast<std::size_t>(count) * sizeof(T)));
}

template <class Format>
void encode_values(std::byte* chunks, std::int64_t count, const std::vector<float>& plain, float* residual) {
  const Layout<Format> layout{count};
  for (std::int64_t block = 0; block < count; block += Format::block) {
    const auto end = std::min<std::int64_t>(count, block + Format::block);
    const auto value = [&](std::int64_t i) {
      if (i >= end) return 0.0f;
      const float own = plain[static_cast<std::size_t>(i)];
      return residual ? with_residual(own, residual[i]) : own;
    };
    Scale scale;
    if constexpr (Format::scaled) {
      std::uint32_t largest = 0;
      for (std::int64_t i = block; i < end; ++i) largest = std::max(largest, magnitude(value(i)));
      scale = scale_of<Format>(largest);
      std::memcpy(chunks + layout.scale_at(block), &scale.scale, 4);
    }
    std::byte* const codes = chunks + layout.codes_at(block);
    for (std::int64_t i = block; i < (Format::nibbles ? block + Format::block / 2 : end); ++i) {
      const std::int64_t j = i - block;
      if constexpr (Format::nibbles) {
        codes[j] = static_cast<std::byte>(code_of<Format>(value(i), scale) |
                                          code_of<Format>(value(i + Format::block / 2), scale) << 4);
      } else if constexpr (Format::scaled) {
        codes[j] = static_cast<std::byte>(code_of<Format>(value(i), scale));
      } else {
        const auto code = static_cast<std::uint16_t>(code_of<Format>(value(i), scale));
        std::memcpy(codes + 2 * j, &code, 2);
      }
    }
    for (std::int64_t i = block; residual && i < end; ++i) {
      residual[i] = lost(value(i), value_of<Format>(code_of<Format>(value(i), scale), scale.scale));
    }
  }
}

template <class Format>
std::vector<float> decode_values(const std::byte* chunks, std::int64_t count) {
  const Layout<Format> layout{count};
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t block = i / Format::block * Format::block, j = i - block;
    const std::byte* const codes = chunks + layout.codes_at(block);
    float scale = 1;
    if constexpr (Format::scaled) std::memcpy(&scale, chunks + layout.scale_at(block), 4);
    std::uint32_t code = 0;
    if constexpr (Format::nibbles) {
      const auto both = static_cast<std::uint32_t>(codes[j % (Format::block / 2)]);
      code = j < Format::block / 2 ? both & 15u : both >> 4;
    } else if constexpr (Format::scaled) {
      code = static_cast<std::uint32_t>(codes[j]);
    } else {
      std::uint16_t half = 0;
      std::memcpy(&half, codes + 2 * j, 2);
      code = half;
    }
    values[static_cast<std::size_t>(i)] = value_of<Format>(code, scale);
  }
  return values;
}

template <class Element>
std::vector<float> load(const void* elements, std::int64_t count) {
  const auto* from = view(static_cast<const typename Element::Stored*>(elements), count);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = Element::widen(from[i]);
  return values;
}
template <class Element>
void store(void* elements, const std::vector<float>& values) {
  auto* to = view(static_cast<const typename Element::Stored*>(elements), static_cast<std::int64_t>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) to[i] = Element::narrow(values[i]);
}

template <class Format, class Visit>
void with_element(DType dtype, Visit visit) {
  if (dtype == DType::f16) visit(Format{}, Half{});
  else if (dtype == DType::bf16) visit(Format{}, Brain{});
  else visit(Format{}, Single{});
}
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

}  // namespace

void preload_codecs() {}

void encode(const DeviceFrame& frame, const void* elements, float* residual, cudaStream_t stream) {
  mock::enqueue(stream, [=] {
    with_types(frame.codec, frame.dtype, [&](auto format, auto element) {
      using Format = decltype(format);
      encode_values<Format>(view(frame.chunks, bytes_of<Format>(frame.count)), frame.count,
                            load<decltype(element)>(elements, frame.count),
                            residual ? view(residual, frame.count) : nullptr);
    });
  });
}

void decode(const DeviceFrame& frame, void* elements, cudaStream_t stream) {
  mock::enqueue(stream, [=] {
    with_types(frame.codec, frame.dtype, [&](auto format, auto element) {
      using Format = decltype(format);
      using Element = decltype(element);
      std::vector<float> values = decode_values<Format>(view(frame.chunks, bytes_of<Format>(frame.count)), frame.count);
      for (float& value : values) value = Element::saturate(value);
      store<Element>(elements, values);
    });
  });
}

void combine(const DeviceReduction& job, cudaStream_t stream) {
  mock::enqueue(stream, [=] {
    with_types(job.first.codec, job.first.dtype, [&](auto format, auto element) {
      using Format = decltype(format);
      using Element = decltype(element);
      const std::int64_t count = job.first.count, bytes = bytes_of<Format>(count);
      const std::byte* frame = job.first.chunks;
      std::vector<float> values;
      for (int r = 0; r < job.ranks; ++r) {
        const std::vector<float> next =
            r == job.rank ? load<Element>(job.own, count) : decode_values<Format>(view(frame, bytes), count);
        if (r != job.rank) frame += job.stride;
        if (r == 0) values = next;
        for (std::size_t i = 0; r > 0 && i < values.size(); ++i) values[i] = combined(values[i], next[i], job.op);
      }
      for (float& value : values) value = finished(value, job.op, job.ranks);
      if (job.elements) return store<Element>(job.elements, values);
      for (float& value : values) value = Element::widen(Element::narrow(value));
      encode_values<Format>(view(job.chunks, bytes), count, values, job.residual ? view(job.residual, count) : nullptr);
    });
  });
}

}  // namespace medley::cuda
