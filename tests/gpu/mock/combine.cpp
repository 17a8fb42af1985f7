// The nccl backend's kernel for reductions that NCCL lacks, as work of the mock's streams.
#include "backends/nccl/combine.hpp"

#include <medley/sdk/reduce.hpp>
#include <vector>

#include "mock.hpp"

namespace medley::nccl {

void preload_combine() {}

void combine(void* out, const void* parts, int ranks, std::int64_t stride, std::int64_t count, DType dtype, ReduceOp op,
             cudaStream_t stream) {
  mock::enqueue(stream, [=] {
    const std::size_t element = size_of(dtype), bytes = static_cast<std::size_t>(count) * element;
    std::vector<const void*> sources;
    for (int r = 0; r < ranks; ++r) {
      const auto* part = static_cast<const std::byte*>(parts) + static_cast<std::size_t>(r * stride) * element;
      sources.push_back(mock::device_view(part, bytes));
    }
    reducer(dtype, op)(mock::device_view(out, bytes), sources.data(), ranks, static_cast<std::size_t>(count),
                       op == ReduceOp::avg ? ranks : 1, false);
  });
}

}  // namespace medley::nccl
