// Collectives on whole tensors.
#include <numeric>

#include "backend.hpp"

namespace medley::torch {
namespace {

/// torch 2.11 has no separate type for it.
template <typename Type>
constexpr Type coalesced_reduce_scatter() {
  if constexpr (requires { Type::REDUCE_SCATTER_TENSOR_COALESCED; }) {
    return Type::REDUCE_SCATTER_TENSOR_COALESCED;
  } else {
    return Type::COALESCED;
  }
}

}  // namespace

WorkPtr TorchBackend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) {
  const at::Tensor& tensor = single("broadcast", tensors);
  const bool async = opts.asyncOp || coalescing_;
  const int root = static_cast<int>(opts.rootRank);
  Staging staging;
  const at::Tensor data = rank_ == root ? staging.in(tensor) : staging.out(tensor);
  medley::Work work =
      issue({Op::broadcast, &data, nullptr, async}, opts.timeout, [&](Comm& comm, const auto& options) {
        return comm.broadcast(buffer_of(data, moved_as(data.scalar_type())), root, options);
      });
  return finished(c10d::OpType::BROADCAST, "medley:broadcast", tensors, tensors, staging, {work});
}

medley::Work TorchBackend::start_allreduce(const at::Tensor& tensor, const c10d::ReduceOp& op,
                                           std::chrono::milliseconds timeout, bool async, Staging& staging) {
  const ReduceOp how = reduction(op);
  const Element element = reduced_as("all_reduce", tensor.scalar_type(), how);
  const at::Tensor data = staging.out(tensor, true);
  if (op == c10d::ReduceOp::PREMUL_SUM) premultiply(data, op);
  return issue({Op::all_reduce, &data, nullptr, async}, timeout, [&](Comm& comm, const auto& options) {
    return comm.all_reduce(buffer_of(data, element), how, options);
  });
}

WorkPtr TorchBackend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) {
  if (tensors.size() == 1 && tensors.front().is_sparse()) return allreduce_sparse(tensors, opts);
  const at::Tensor& tensor = single("all_reduce", tensors);
  Staging staging;
  medley::Work work =
      start_allreduce(tensor, opts.reduceOp, opts.timeout, opts.asyncOp || coalescing_, staging);
  return finished(c10d::OpType::ALLREDUCE, "medley:all_reduce", tensors, tensors, staging, {work});
}

WorkPtr TorchBackend::allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& opts) {
  check_tensors("all_reduce_coalesced", tensors);
  Staging staging;
  std::vector<medley::Work> works;
  fused([&] {
    for (const at::Tensor& tensor : tensors)
      works.push_back(start_allreduce(tensor, opts.reduceOp, opts.timeout, true, staging));
  });
  return finished(c10d::OpType::ALLREDUCE_COALESCED, "medley:all_reduce", tensors, tensors, staging,
                  std::move(works));
}

WorkPtr TorchBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& opts) {
  const at::Tensor& tensor = single("reduce", tensors);
  const bool async = opts.asyncOp || coalescing_;
  const int root = static_cast<int>(opts.rootRank);
  const ReduceOp how = reduction(opts.reduceOp);
  const Element element = reduced_as("reduce", tensor.scalar_type(), how);
  Staging staging;
  at::Tensor data = rank_ == root ? staging.out(tensor, true) : staging.in(tensor);
  if (opts.reduceOp == c10d::ReduceOp::PREMUL_SUM) {
    if (rank_ != root) data = staging.in(data.clone());  // only the root's tensor may change
    premultiply(data, opts.reduceOp);
  }
  medley::Work work =
      issue({Op::reduce, &data, nullptr, async}, opts.timeout, [&](Comm& comm, const auto& options) {
        return comm.reduce(buffer_of(data, element), how, root, options);
      });
  return finished(c10d::OpType::REDUCE, "medley:reduce", tensors, tensors, staging, {work});
}

medley::Work TorchBackend::start_allgather(const at::Tensor& output, const at::Tensor& input,
                                           const c10d::AllgatherOptions& opts, bool async) {
  const Element element = moved_as(input.scalar_type());
  return issue({Op::all_gather, &input, &output, async}, opts.timeout, [&](Comm& comm, const auto& options) {
    return comm.all_gather(const_buffer_of(input, element), buffer_of(output, element), options);
  });
}

WorkPtr TorchBackend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                      const c10d::AllgatherOptions& opts) {
  check_tensors("all_gather_into_tensor", {output, input});
  Staging staging;
  const at::Tensor out = staging.out(output), in = staging.in(input);
  medley::Work work = start_allgather(out, in, opts, opts.asyncOp || coalescing_);
  return finished(c10d::OpType::_ALLGATHER_BASE, "medley:_all_gather_base", {input}, {output}, staging,
                  {work});
}

WorkPtr TorchBackend::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                      const c10d::AllgatherOptions& opts) {
  require(outputs.size() == inputs.size(), "all_gather_into_tensor_coalesced: got ",
          outputs.size(), " outputs for ", inputs.size(), " inputs");
  Staging staging;
  std::vector<medley::Work> works;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_tensors("all_gather_into_tensor_coalesced", {outputs[i], inputs[i]});
  }
  fused([&] {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      works.push_back(start_allgather(staging.out(outputs[i]), staging.in(inputs[i]), opts, true));
  });
  return finished(c10d::OpType::ALLGATHER_COALESCED, "medley:all_gather_into_tensor_coalesced", inputs,
                  outputs, staging, std::move(works));
}

medley::Work TorchBackend::start_reduce_scatter(const at::Tensor& output, const at::Tensor& input,
                                                const c10d::ReduceScatterOptions& opts, bool async,
                                                Staging& staging) {
  const ReduceOp how = reduction(opts.reduceOp);
  const Element element = reduced_as("reduce_scatter_tensor", input.scalar_type(), how);
  at::Tensor in = input;
  if (opts.reduceOp == c10d::ReduceOp::PREMUL_SUM) {
    in = staging.in(input.clone());
    premultiply(in, opts.reduceOp);
  }
  return issue({Op::reduce_scatter, &in, &output, async}, opts.timeout, [&](Comm& comm, const auto& options) {
    return comm.reduce_scatter(const_buffer_of(in, element), buffer_of(output, element), how, options);
  });
}

WorkPtr TorchBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                           const c10d::ReduceScatterOptions& opts) {
  check_tensors("reduce_scatter_tensor", {output, input});
  Staging staging;
  const at::Tensor out = staging.out(output), in = staging.in(input);
  medley::Work work = start_reduce_scatter(out, in, opts, opts.asyncOp || coalescing_, staging);
  return finished(c10d::OpType::_REDUCE_SCATTER_BASE, "medley:_reduce_scatter_base", {input}, {output},
                  staging, {work});
}

WorkPtr TorchBackend::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                      const c10d::ReduceScatterOptions& opts) {
  require(outputs.size() == inputs.size(), "reduce_scatter_tensor_coalesced: got ", outputs.size(),
          " outputs for ", inputs.size(), " inputs");
  Staging staging;
  std::vector<medley::Work> works;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_tensors("reduce_scatter_tensor_coalesced", {outputs[i], inputs[i]});
  }
  fused([&] {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      works.push_back(
          start_reduce_scatter(staging.out(outputs[i]), staging.in(inputs[i]), opts, true, staging));
  });
  return finished(coalesced_reduce_scatter<c10d::OpType>(), "medley:reduce_scatter_tensor_coalesced", inputs,
                  outputs, staging, std::move(works));
}

namespace {

/// Split sizes count rows of the first dimension; Medley counts elements. Empty: equal parts.
std::vector<std::int64_t> elements(const char* side, const std::vector<std::int64_t>& splits,
                                   const at::Tensor& tensor, int ranks, std::int64_t factor) {
  const std::int64_t rows = tensor.dim() > 0 ? tensor.size(0) : 1;
  std::vector<std::int64_t> parts = splits;
  if (parts.empty()) {
    require(rows % ranks == 0, "all_to_all_single: the ", side, "'s first dimension, ", rows,
            ", cannot be divided among ", ranks, " ranks; give split sizes");
    parts.assign(static_cast<std::size_t>(ranks), rows / ranks);
  }
  const std::int64_t sum = std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
  require(static_cast<int>(parts.size()) == ranks, "all_to_all_single: ", parts.size(), " ", side,
          " split sizes for ", ranks, " ranks");
  require(sum == rows, "all_to_all_single: the ", side, "'s split sizes add up to ", sum,
          ", but its first dimension is ", rows);
  const std::int64_t row = rows > 0 ? tensor.numel() / rows * factor : 0;
  for (std::int64_t& part : parts) part *= row;
  return parts;
}

}  // namespace

WorkPtr TorchBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                    std::vector<std::int64_t>& output_splits,
                                    std::vector<std::int64_t>& input_splits,
                                    const c10d::AllToAllOptions& opts) {
  check_tensors("all_to_all_single", {output, input});
  const bool async = opts.asyncOp || coalescing_;
  const Element element = moved_as(input.scalar_type());
  const auto in_counts = elements("input", input_splits, input, size_, element.factor);
  const auto out_counts = elements("output", output_splits, output, size_, element.factor);
  Staging staging;
  const at::Tensor out = staging.out(output), in = staging.in(input);
  medley::Work work;
  if (input_splits.empty() && output_splits.empty()) {
    work = issue({Op::all_to_all, &in, &out, async}, opts.timeout, [&](Comm& comm, const auto& options) {
      return comm.all_to_all(const_buffer_of(in, element), buffer_of(out, element), options);
    });
  } else {
    work = issue({Op::all_to_allv, &in, &out, async}, opts.timeout, [&](Comm& comm, const auto& options) {
      return comm.all_to_allv(const_buffer_of(in, element), {.counts = in_counts}, buffer_of(out, element),
                              {.counts = out_counts}, options);
    });
  }
  return finished(c10d::OpType::ALLTOALL_BASE, "medley:all_to_all", {input}, {output}, staging, {work});
}

}  // namespace medley::torch
