// Compressed operations on CUDA memory and on host memory, for tests that compare their bits.
#pragma once

#include <sched.h>

#include <functional>
#include <map>
#include <medley/medley.hpp>
#include <string>
#include <vector>

#include "compress/tensors.hpp"
#include "conformance/device_memory.hpp"

namespace medley::compress::test {

using conformance::DeviceImage;
using conformance::test_device;

inline const std::map<std::string, BlockCodec> kernels{{"bf16", BlockCodec::bf16},
                                                       {"fp8_e4m3", BlockCodec::fp8_e4m3},
                                                       {"fp8_e5m2", BlockCodec::fp8_e5m2},
                                                       {"int8", BlockCodec::int8},
                                                       {"int4", BlockCodec::int4}};
inline constexpr DType floats[] = {DType::f32, DType::f16, DType::bf16};

/// Every kind of values that breaks codecs, the last two with non-finite ones.
inline std::vector<float> tensor(int kind, std::int64_t count) {
  core::Random random(static_cast<std::uint64_t>(100 * kind + count));
  std::vector<float> values = make_values(static_cast<Values>(kind % value_kinds), count, random);
  const float odd[] = {INFINITY, -INFINITY, NAN, -NAN};
  for (int i = 0; kind >= value_kinds && i < 3; ++i) values[random.bits() % values.size()] = odd[random.bits() % 4];
  return values;
}

inline void finish(void* stream) {
  void* const event = test_device().record(stream);
  while (!test_device().completed(event)) sched_yield();
  test_device().release_event(event);
}

/// The results of one operation of every kind on this rank, from tensors in host or in CUDA memory.
struct Job {
  Comm& world;
  Memory memory;
  std::string codec;
  DType dtype;
  std::string backend = "shm";
  /// On nccl one for each rank: in a stream that they share, one would wait for the other's operation
  void* stream = nullptr;
  ErrorFeedback feedback{};
  std::vector<std::vector<std::byte>> results{};

  using Run = std::function<void(Buffer in, Buffer out, const Options& options)>;
  void run(const std::vector<std::byte>& in, std::size_t out_elements, bool feed, const Run& operation) {
    std::vector<std::byte> out(out_elements * size_of(dtype));
    const Options options{
        .backend = backend, .stream = stream, .compress = codec, .feedback = feed ? &feedback : nullptr};
    const auto count = static_cast<std::int64_t>(in.size() / size_of(dtype));
    if (memory == Memory::host) {
      std::vector<std::byte> input = in;
      operation({input.data(), count, dtype}, {out.data(), static_cast<std::int64_t>(out_elements), dtype}, options);
      results.push_back(out_elements > 0 ? out : input);
      return;
    }
    DeviceImage input(in.size() + 1), output(out.size() + 1);
    test_device().copy_now(input.data(), in.data(), in.size());
    operation({input.data(), count, dtype, Memory::cuda, 0},
              {output.data(), static_cast<std::int64_t>(out_elements), dtype, Memory::cuda, 0}, options);
    if (stream) finish(stream);
    std::vector<std::byte>& result = results.emplace_back(out_elements > 0 ? out.size() : in.size());
    test_device().copy_now(result.data(), out_elements > 0 ? output.data() : input.data(), result.size());
  }
};

}  // namespace medley::compress::test
