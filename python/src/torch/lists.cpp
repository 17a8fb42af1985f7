// Collectives on lists with one tensor per rank. A list is sent as one flat tensor, staged unless it is
// already contiguous; lists of different sizes become v-collectives.
#include <algorithm>

#include "backend.hpp"

namespace medley::torch {
namespace {

void check_list(const char* operation, const Tensors& list, int ranks) {
  require(static_cast<int>(list.size()) == ranks, operation, ": got a list of ", list.size(),
          " tensors for ", ranks, " ranks");
  check_tensors(operation, list);
}

/// The one list of an argument that has one tensor per rank.
const Tensors& per_rank(const char* operation, const std::vector<Tensors>& lists, int ranks) {
  require(lists.size() == 1, operation, ": takes one list of tensors, got ", lists.size());
  check_list(operation, lists.front(), ranks);
  return lists.front();
}

std::vector<std::int64_t> counts_of(const Tensors& tensors, std::int64_t factor) {
  std::vector<std::int64_t> counts;
  for (const at::Tensor& tensor : tensors) counts.push_back(tensor.numel() * factor);
  return counts;
}

bool all_equal(const std::vector<std::int64_t>& counts) {
  return std::adjacent_find(counts.begin(), counts.end(), std::not_equal_to<>()) == counts.end();
}

void check_own(const char* operation, const at::Tensor& own, const at::Tensor& part, int rank) {
  check_tensors(operation, {own, part});
  require(own.numel() == part.numel(), operation, ": the tensor of rank ", rank, " has ",
          own.numel(), " elements, but its place in the list has ", part.numel());
}

/// The empty buffer of a rank that is not the root; on the same device.
Buffer nothing_beside(const at::Tensor& tensor, Element element) {
  Buffer buffer = buffer_of(tensor, element);
  buffer.data = nullptr;
  buffer.count = 0;
  return buffer;
}

}  // namespace

WorkPtr TorchBackend::allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                const c10d::AllgatherOptions& opts) {
  const at::Tensor& input = single("all_gather", inputs);
  const Tensors& list = per_rank("all_gather", outputs, size_);
  check_own("all_gather", input, list[static_cast<std::size_t>(rank_)], rank_);
  const bool async = opts.asyncOp || coalescing_;
  const Element element = moved_as(input.scalar_type());
  const auto counts = counts_of(list, element.factor);
  Staging staging;
  const at::Tensor in = staging.in(input), out = staging.flat_out(list);
  medley::Work work;
  if (all_equal(counts)) {
    work = start_allgather(out, in, opts, async);
  } else {
    work = issue({Op::all_gatherv, &in, &out, async}, opts.timeout, [&](Comm& comm, const auto& options) {
      return comm.all_gatherv(const_buffer_of(in, element), buffer_of(out, element), {.counts = counts},
                              options);
    });
  }
  return finished(c10d::OpType::ALLGATHER, "medley:all_gather", inputs, list, staging, {work});
}

WorkPtr TorchBackend::allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& opts) {
  // outputs[r] is rank r's input: the transpose of one all_gather per input.
  require(static_cast<int>(outputs.size()) == size_, "all_gather_coalesced: got ", outputs.size(),
          " lists for ", size_, " ranks");
  Staging staging;
  std::vector<medley::Work> works;
  Tensors all;
  std::vector<Tensors> lists(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (const Tensors& of_rank : outputs) {
      require(of_rank.size() == inputs.size(), "all_gather_coalesced: got ", of_rank.size(),
              " outputs for ", inputs.size(), " inputs");
      lists[i].push_back(of_rank[i]);
    }
    check_tensors("all_gather_coalesced", lists[i]);
    check_own("all_gather_coalesced", inputs[i], lists[i][static_cast<std::size_t>(rank_)], rank_);
    all.insert(all.end(), lists[i].begin(), lists[i].end());
  }
  fused([&] {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      works.push_back(start_allgather(staging.flat_out(lists[i]), staging.in(inputs[i]), opts, true));
  });
  return finished(c10d::OpType::ALLGATHER_COALESCED, "medley:all_gather", inputs, all, staging,
                  std::move(works));
}

WorkPtr TorchBackend::gather(std::vector<Tensors>& outputs, Tensors& inputs,
                             const c10d::GatherOptions& opts) {
  const at::Tensor& input = single("gather", inputs);
  const bool async = opts.asyncOp || coalescing_;
  const int root = static_cast<int>(opts.rootRank);
  const Element element = moved_as(input.scalar_type());
  Staging staging;
  const at::Tensor in = staging.in(input);
  Buffer out = nothing_beside(in, element);
  Tensors list;
  if (rank_ == root) {
    list = per_rank("gather", outputs, size_);
    check_own("gather", input, list[static_cast<std::size_t>(rank_)], rank_);
    out = buffer_of(staging.flat_out(list), element);
  } else {
    require(outputs.empty(), "gather: only the root, rank ", root, ", takes a list of outputs");
  }
  medley::Work work =
      issue({Op::gather, &in, nullptr, async}, opts.timeout, [&](Comm& comm, const auto& options) {
        return comm.gather(const_buffer_of(in, element), out, root, options);
      });
  return finished(c10d::OpType::GATHER, "medley:gather", inputs, list, staging, {work});
}

WorkPtr TorchBackend::scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                              const c10d::ScatterOptions& opts) {
  const at::Tensor& output = single("scatter", outputs);
  const bool async = opts.asyncOp || coalescing_;
  const int root = static_cast<int>(opts.rootRank);
  const Element element = moved_as(output.scalar_type());
  Staging staging;
  const at::Tensor out = staging.out(output);
  ConstBuffer in = nothing_beside(out, element);
  if (rank_ == root) {
    const Tensors& list = per_rank("scatter", inputs, size_);
    check_own("scatter", output, list[static_cast<std::size_t>(rank_)], rank_);
    in = const_buffer_of(staging.flat_in(list), element);
  } else {
    require(inputs.empty(), "scatter: only the root, rank ", root, ", gives a list of inputs");
  }
  medley::Work work =
      issue({Op::scatter, &out, nullptr, async}, opts.timeout, [&](Comm& comm, const auto& options) {
        return comm.scatter(in, buffer_of(out, element), root, options);
      });
  return finished(c10d::OpType::SCATTER, "medley:scatter", outputs, outputs, staging, {work});
}

WorkPtr TorchBackend::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                     const c10d::ReduceScatterOptions& opts) {
  const at::Tensor& output = single("reduce_scatter", outputs);
  const Tensors& list = per_rank("reduce_scatter", inputs, size_);
  check_own("reduce_scatter", output, list[static_cast<std::size_t>(rank_)], rank_);
  const bool async = opts.asyncOp || coalescing_;
  Staging staging;
  const at::Tensor out = staging.out(output);
  at::Tensor in = staging.flat_in(list);
  const ReduceOp how = reduction(opts.reduceOp);
  const Element element = reduced_as("reduce_scatter", in.scalar_type(), how);
  const auto counts = counts_of(list, element.factor);
  if (opts.reduceOp == c10d::ReduceOp::PREMUL_SUM) {
    in = staging.in(in.clone());
    premultiply(in, opts.reduceOp);
  }
  medley::Work work;
  if (all_equal(counts)) {
    work = issue({Op::reduce_scatter, &in, &out, async}, opts.timeout, [&](Comm& comm, const auto& options) {
      return comm.reduce_scatter(const_buffer_of(in, element), buffer_of(out, element), how, options);
    });
  } else {
    work = issue({Op::reduce_scatterv, &in, &out, async}, opts.timeout, [&](Comm& comm, const auto& options) {
      return comm.reduce_scatterv(const_buffer_of(in, element), {.counts = counts}, buffer_of(out, element),
                                  how, options);
    });
  }
  return finished(c10d::OpType::REDUCE_SCATTER, "medley:reduce_scatter", list, outputs, staging, {work});
}

WorkPtr TorchBackend::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& opts) {
  check_list("all_to_all", outputs, size_);
  check_list("all_to_all", inputs, size_);
  check_tensors("all_to_all", {inputs.front(), outputs.front()});
  const bool async = opts.asyncOp || coalescing_;
  const Element element = moved_as(inputs.front().scalar_type());
  const auto in_counts = counts_of(inputs, element.factor), out_counts = counts_of(outputs, element.factor);
  Staging staging;
  const at::Tensor in = staging.flat_in(inputs), out = staging.flat_out(outputs);
  medley::Work work =
      issue({Op::all_to_allv, &in, &out, async}, opts.timeout, [&](Comm& comm, const auto& options) {
        return comm.all_to_allv(const_buffer_of(in, element), {.counts = in_counts}, buffer_of(out, element),
                                {.counts = out_counts}, options);
      });
  return finished(c10d::OpType::ALLTOALL, "medley:all_to_all", inputs, outputs, staging, {work});
}

}  // namespace medley::torch
