// Gather and combine: each rank that needs the result receives all inputs and combines them in rank order, as
// the shm backend does; for the smallest tensors, and for f16 and bf16, whose inputs travel in their own
// type. |error| <= (n-1)·u·Σ|x|, u = 2^-53 for f64 and 2^-24 for f32, f16 and bf16, the last two plus one
// rounding.
#include <vector>

#include "algorithms/algorithms.hpp"

namespace medley::algorithms {
namespace {

void combine_in_order(const Job& job, const std::byte* inputs, std::int64_t count) {
  std::vector<const std::byte*> sources;
  for (int r = 0; r < job.size; ++r) sources.push_back(inputs + static_cast<std::size_t>(r) * job.bytes(count));
  job.combiner().finish_all(job.out(), sources.data(), job.size, count);
}

}  // namespace

Task gather_combine_all_reduce(Job& job) {
  const std::int64_t count = job.call.in_count;
  const Scratch inputs(job.bytes(count) * static_cast<std::size_t>(job.size));
  Call gather = job.call;
  gather.op = Op::all_gather;
  gather.out = inputs.data();
  gather.out_count = count * job.size;
  Job inner{gather, job.rank, job.size, job.messages};
  co_await bruck_all_gather(inner);
  combine_in_order(job, inputs.data(), count);
}

Task gather_combine_reduce(Job& job) {
  const std::int64_t count = job.call.in_count;
  const bool root = job.rank == job.call.root;
  const Scratch inputs(root ? job.bytes(count) * static_cast<std::size_t>(job.size) : 0);
  Call gather = job.call;
  gather.op = Op::gather;
  gather.out = root ? inputs.data() : nullptr;
  gather.out_count = root ? count * job.size : 0;
  Job inner{gather, job.rank, job.size, job.messages};
  co_await binomial_gather(inner);
  if (root) combine_in_order(job, inputs.data(), count);
}

}  // namespace medley::algorithms
