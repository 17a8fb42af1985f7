// all_reduce of sparse tensors: gathers all ranks' indices and values and adds them up on every rank.
#include "backend.hpp"
#include "gil.hpp"

namespace medley::torch {
namespace {

/// All ranks' rows of a tensor whose first dimension differs between ranks.
at::Tensor gather_rows(Comm& comm, const at::Tensor& rows, const std::vector<std::int64_t>& counts,
                       const medley::Options& options) {
  const Element element = moved_as(rows.scalar_type());
  std::vector<std::int64_t> sizes = rows.sizes().vec(), parts;
  sizes[0] = 0;
  std::int64_t row = 1;
  for (std::size_t d = 1; d < sizes.size(); ++d) row *= sizes[d];
  for (std::int64_t count : counts) {
    sizes[0] += count;
    parts.push_back(count * row * element.factor);
  }
  const at::Tensor all = at::empty(sizes, rows.options());
  const at::Tensor mine = rows.contiguous();
  medley::Work work =
      comm.all_gatherv(const_buffer_of(mine, element), buffer_of(all, element), {.counts = parts}, options);
  if (rows.is_cuda()) {
    work.wait();
  } else {
    while (!work.wait_for(between_signals)) check_signals();
  }
  return all;
}

}  // namespace

WorkPtr TorchBackend::allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& opts) {
  require(tensors.size() == 1 && tensors.front().is_sparse(),
          "all_reduce: takes one sparse tensor per rank, in COO layout");
  require(opts.reduceOp == c10d::ReduceOp::SUM, "all_reduce: sparse tensors can only be summed");
  const at::NoGradGuard no_grad;
  at::Tensor tensor = tensors.front();
  const at::Tensor mine = tensor.coalesce();
  std::vector<std::int64_t> shape = {mine.sparse_dim(), mine.dense_dim(), mine._nnz()};
  shape.insert(shape.end(), mine.sizes().begin(), mine.sizes().end());
  const at::Tensor my_shape = at::tensor(shape, at::kLong).to(mine.device());
  // Waits for each step: its result gives the sizes of the next.
  const Issue issue(*this, {.op = Op::all_gatherv, .in = &my_shape}, opts.timeout);
  const std::vector<std::int64_t> equal(static_cast<std::size_t>(size_), my_shape.numel());
  const auto gather = [&](const at::Tensor& rows, const std::vector<std::int64_t>& counts) {
    return raising([&] { return gather_rows(comm(), rows, counts, issue.options()); });
  };
  const at::Tensor shapes = gather(my_shape, equal).cpu();
  std::vector<std::int64_t> counts;
  for (int r = 0; r < size_; ++r) {
    const auto* of_rank = shapes.const_data_ptr<std::int64_t>() + static_cast<std::size_t>(r) * shape.size();
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (d != 2 && of_rank[d] != shape[d])
        throw TorchError(Error(ErrorKind::mismatch, "all_reduce: sparse tensors need one shape on all ranks"));
    }
    counts.push_back(of_rank[2]);
  }
  const at::Tensor my_indices = mine.indices().t().contiguous(), my_values = mine.values().contiguous();
  const at::Tensor indices = gather(my_indices, counts);
  const at::Tensor values = gather(my_values, counts);
  const at::Tensor total =
      at::sparse_coo_tensor(indices.t(), values, mine.sizes(), mine.options()).coalesce();
  tensor.copy_(total);
  return finished(c10d::OpType::_ALLREDUCE_SPARSE, "medley:sparse_all_reduce", {}, tensors, {}, {});
}

}  // namespace medley::torch
