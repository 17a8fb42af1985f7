#include "tune/workload.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <new>

#include "tune/element_values.hpp"
#include "tune/sizes.hpp"

namespace medley::tune {
void Workload::Free::operator()(std::byte* memory) const { std::free(memory); }

Workload::Block Workload::allocate(std::size_t bytes) {
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(4096, (bytes + 4096) / 4096 * 4096));
  if (!memory) throw Error(ErrorKind::system, fmt::format("cannot allocate {} bytes for a benchmark's buffer", bytes));
  return Block(memory);
}

Workload::Workload(Comm comm, Op op, std::size_t bytes, DType dtype, std::string backend)
    : comm_(std::move(comm)), op_(op), dtype_(dtype), backend_(std::move(backend)),
      elements_(elements_of(op, bytes, size_of(dtype), comm_.size())),
      part_(elements_ / static_cast<std::size_t>(comm_.size())) {
  const bool root = comm_.rank() == 0;
  switch (op) {
    case Op::barrier: break;
    case Op::send:
    case Op::recv: in_count_ = out_count_ = elements_; break;
    case Op::broadcast: out_count_ = elements_; break;
    case Op::reduce: in_count_ = elements_, out_count_ = root ? elements_ : 0; break;
    case Op::gather:
    case Op::gatherv: in_count_ = part_, out_count_ = root ? elements_ : 0; break;
    case Op::scatter:
    case Op::scatterv: in_count_ = root ? elements_ : 0, out_count_ = part_; break;
    case Op::all_gather:
    case Op::all_gatherv: in_count_ = part_, out_count_ = elements_; break;
    case Op::reduce_scatter:
    case Op::reduce_scatterv: in_count_ = elements_, out_count_ = part_; break;
    case Op::all_reduce:
    case Op::all_to_all:
    case Op::all_to_allv: in_count_ = out_count_ = elements_; break;
  }
  counts_.assign(static_cast<std::size_t>(comm_.size()), static_cast<std::int64_t>(part_));
  in_ = allocate(in_count_ * size_of(dtype));
  out_ = allocate(out_count_ * size_of(dtype));
}

void Workload::dirty() {
  // Output first, input last, as a computation leaves them. Every rank sends its rank + 1.
  fill(out_.get(), out_count_, dtype_, op_ == Op::broadcast && comm_.rank() == 0 ? 1 : 0);
  fill(in_.get(), in_count_, dtype_, comm_.rank() + 1);
}

void Workload::run() {
  const Options options{.backend = backend_};
  const Parts parts{counts_};
  const int rank = comm_.rank(), size = comm_.size();
  switch (op_) {
    case Op::barrier: comm_.barrier(options); break;
    case Op::send:
    case Op::recv:
      if (size == 1) {
        comm_.sendrecv(in(in_count_), 0, out(out_count_), 0, options);
      } else if (rank % 2 == 0 && rank + 1 < size) {
        comm_.send(in(in_count_), rank + 1, options);
      } else if (rank % 2 == 1) {
        comm_.recv(out(out_count_), rank - 1, options);
      }
      break;
    case Op::broadcast: comm_.broadcast(out(out_count_), 0, options); break;
    case Op::reduce: comm_.reduce(in(in_count_), out(out_count_), sum, 0, options); break;
    case Op::all_reduce: comm_.all_reduce(in(in_count_), out(out_count_), sum, options); break;
    case Op::gather: comm_.gather(in(in_count_), out(out_count_), 0, options); break;
    case Op::all_gather: comm_.all_gather(in(in_count_), out(out_count_), options); break;
    case Op::scatter: comm_.scatter(in(in_count_), out(out_count_), 0, options); break;
    case Op::reduce_scatter: comm_.reduce_scatter(in(in_count_), out(out_count_), sum, options); break;
    case Op::all_to_all: comm_.all_to_all(in(in_count_), out(out_count_), options); break;
    case Op::gatherv: comm_.gatherv(in(in_count_), out(out_count_), parts, 0, options); break;
    case Op::scatterv: comm_.scatterv(in(in_count_), parts, out(out_count_), 0, options); break;
    case Op::all_gatherv: comm_.all_gatherv(in(in_count_), out(out_count_), parts, options); break;
    case Op::reduce_scatterv: comm_.reduce_scatterv(in(in_count_), parts, out(out_count_), sum, options); break;
    case Op::all_to_allv: comm_.all_to_allv(in(in_count_), parts, out(out_count_), parts, options); break;
  }
}

void Workload::expect_filled_by(std::size_t begin, std::size_t count, double value) const {
  const std::size_t at = first_other(out_.get() + begin * size_of(dtype_), count, dtype_, value);
  if (at == count) return;
  throw Error(ErrorKind::mismatch, fmt::format("{} of {} bytes over {} gave a wrong value at element {}", name(op_),
                                               bytes(), backend_.empty() ? "auto" : backend_, begin + at));
}

void Workload::check() {
  dirty();
  run();
  const int rank = comm_.rank(), size = comm_.size();
  if (out_count_ == 0) return;
  if (reduces(op_)) return expect_filled_by(0, out_count_, size * (size + 1) / 2);
  if (rooted(op_) && op_ != Op::gather && op_ != Op::gatherv) return expect_filled_by(0, out_count_, 1);
  if (op_ == Op::send || op_ == Op::recv) {
    if (size == 1 || rank % 2 == 1) expect_filled_by(0, out_count_, size == 1 ? 1 : rank);
    return;
  }
  for (int r = 0; r < size; ++r) expect_filled_by(static_cast<std::size_t>(r) * part_, part_, r + 1);
}

}  // namespace medley::tune
