// PyTorch DistributedDataParallel: a first bucket of 1 MiB, then 25 MiB, reduced during the backward pass.
#include "plan/frameworks.hpp"

namespace medley::plan {
namespace {

Count dtype_limit(Count bytes, DType dtype) {
  return std::max<Count>(1, ceil_div(bytes, static_cast<Count>(size_of(dtype))));
}

}  // namespace

Schedule ddp_schedule(const Model& m, const Layout& l, Count rank) {
  if (l.tp > 1 || l.pp > 1 || l.cp > 1 || l.ep > 1)
    refuse(Framework::ddp, "it knows data parallelism only; use dp alone, or another framework");
  if (l.zero > 0) refuse(Framework::ddp, "zero must be 0; sharded data parallelism is fsdp2 or deepspeed");
  const View view(m, l, rank);
  const DType grad = l.grad_dtype.value_or(l.dtype);
  const Count wide = static_cast<Count>(size_of(grad));
  // A bucket closes once it reaches its size. From the second step on, buckets follow the order in which
  // gradients become ready: the reverse of the forward order.
  auto buckets = fill_buckets(view.tensors(), false, dtype_limit(l.flags.first_bucket_bytes, grad),
                              dtype_limit(l.flags.bucket_bytes, grad));
  const auto more = fill_buckets(view.tensors(), true, dtype_limit(l.flags.bucket_bytes, grad),
                                 dtype_limit(l.flags.bucket_bytes, grad));
  buckets.insert(buckets.end(), more.begin(), more.end());

  Schedule schedule;
  TensorRules rules;
  rules.reduce_dtype = l.dtype;
  // Queries and keys are strided views of one product, which element-wise kernels do not read in vectors.
  rules.rotary = {16, 2, 4};
  Body body(view, schedule, rules);
  BodyHooks hooks;
  hooks.after = [&](Count layer, bool) {
    std::vector<Entry> out;
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      if (buckets[i].last_layer != layer || view.dp_group < 2) continue;
      Entry entry = async(
          comm(Op::all_reduce, "dp", view.dp_group, product({buckets[i].elements, wide}, "gradients"), grad,
               Phase::backward, "gradients", "a full gradient bucket is averaged while the backward pass goes on"),
          token::gradients);
      if (i + 1 == buckets.size()) {
        entry.exposed = true;
        entry.why = "the last gradient bucket: nothing is left to hide it behind";
      }
      out.push_back(std::move(entry));
    }
    return out;
  };
  hooks.at_end = [&](int, bool) { return std::vector<Entry>{wait_for(token::gradients, Phase::backward)}; };
  write_pipeline(view, schedule, 0, {}, [&](const Pass& pass) {
    const bool reduces = !pass.forward && (!l.flags.no_sync || pass.micro_batch == view.micro_batches - 1);
    return body.block(pass.chunk, pass.forward, reduces ? 1 : 0, reduces ? hooks : BodyHooks{});
  });
  const Count all = sum(elements(view.tensors(), false), elements(view.tensors(), true));
  // torch.optim keeps its state in the type of the parameters: the gradient is read, the parameter and two
  // moments are read and written.
  schedule.add(0, memory_bound(product({all, 7, view.e}), Phase::optimizer, "adam"));
  return schedule;
}

}  // namespace medley::plan
