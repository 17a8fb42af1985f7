#include "tune/workload.hpp"

#include <fmt/format.h>

#include <numeric>

#include "base/v_collectives.hpp"
#include "compress/spec.hpp"
#include "engine/size_agreement.hpp"
#include "tune/sizes.hpp"

namespace medley::tune {

Workload::Workload(Comm comm, Op op, std::size_t bytes, DType dtype, Memory memory, Counts counts)
    : comm_(std::move(comm)),
      op_(op),
      dtype_(dtype),
      memory_(memory),
      elements_(elements_of(op, bytes, size_of(dtype), comm_.size())) {
  share_out(is_v_collective(op) ? counts : Counts::uniform);
  const bool root = comm_.rank() == 0;
  const auto part = static_cast<std::size_t>(counts_[static_cast<std::size_t>(comm_.rank())]);
  std::size_t in = 0, out = 0;
  switch (op) {
    case Op::barrier: break;
    case Op::send:
    case Op::recv: in = out = elements_; break;
    case Op::broadcast: out = elements_; break;
    case Op::reduce: in = elements_, out = root ? elements_ : 0; break;
    case Op::gather:
    case Op::gatherv: in = part, out = root ? elements_ : 0; break;
    case Op::scatter:
    case Op::scatterv: in = root ? elements_ : 0, out = part; break;
    case Op::all_gather:
    case Op::all_gatherv: in = part, out = elements_; break;
    case Op::reduce_scatter:
    case Op::reduce_scatterv: in = elements_, out = part; break;
    case Op::all_reduce:
    case Op::all_to_all: in = out = elements_; break;
    case Op::all_to_allv: in = elements_, out = part * static_cast<std::size_t>(comm_.size()); break;
  }
  received_.assign(counts_.size(), static_cast<std::int64_t>(part));
  in_ = Block(in, dtype, memory);
  out_ = Block(out, dtype, memory);
}

void Workload::share_out(Counts counts) {
  const auto n = static_cast<std::int64_t>(comm_.size()), whole = static_cast<std::int64_t>(elements_);
  for (std::int64_t r = 0; r < n; ++r)
    counts_.push_back(counts == Counts::uniform ? whole / n : whole * (r + 1) * 2 / (n * (n + 1)));
  if (counts == Counts::skewed)
    counts_.back() += whole - std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0});
}

void Workload::dirty() {
  // Output first, input last, as a computation leaves them. Every rank sends its rank + 1.
  out_.fill(op_ == Op::broadcast && comm_.rank() == 0 ? 1 : 0);
  in_.fill(comm_.rank() + 1);
  if (memory_ == Memory::cuda) core::wait_for_device();  // otherwise the copies would be part of the sample
}

Sample Workload::time(JobClock& clock, const Choice& route, int batch) {
  dirty();
  Sample sample = clock.time([&] { run(route, batch); });
  sample.us /= batch;
  return sample;
}

void Workload::run(const Choice& route, int batch) {
  Work last;
  for (int i = 0; i < batch; ++i) last = issue(route);
  last.wait_host();  // completes the earlier ones in the stream too; on host memory all are complete already
}

Work Workload::issue(const Choice& route) {
  const Options options{.backend = route.backend, .algorithm = route.algorithm};
  const ConstBuffer in = in_.buffer();
  const Buffer out = out_.buffer();
  switch (op_) {
    case Op::barrier: return comm_.barrier(memory_, options);
    case Op::send:
    case Op::recv: return run_message(options);
    case Op::broadcast: return comm_.broadcast(out, 0, options);
    case Op::reduce: return comm_.reduce(in, out, sum, 0, options);
    case Op::all_reduce: return comm_.all_reduce(in, out, sum, options);
    case Op::gather: return comm_.gather(in, out, 0, options);
    case Op::all_gather: return comm_.all_gather(in, out, options);
    case Op::scatter: return comm_.scatter(in, out, 0, options);
    case Op::reduce_scatter: return comm_.reduce_scatter(in, out, sum, options);
    case Op::all_to_all: return comm_.all_to_all(in, out, options);
    default: return run_v_form(options);
  }
}

/// Ranks exchange in pairs; one without a partner does nothing.
Work Workload::run_message(const Options& options) {
  const int rank = comm_.rank(), size = comm_.size();
  if (size == 1) return comm_.sendrecv(in_.buffer(), 0, out_.buffer(), 0, options);
  if (rank % 2 == 1) return comm_.recv(out_.buffer(), rank - 1, options);
  return rank + 1 < size ? comm_.send(in_.buffer(), rank + 1, options) : Work();
}

Work Workload::run_v_form(const Options& options) {
  const Parts parts{counts_};
  const ConstBuffer in = in_.buffer();
  const Buffer out = out_.buffer();
  switch (op_) {
    case Op::gatherv: return comm_.gatherv(in, out, parts, 0, options);
    case Op::scatterv: return comm_.scatterv(in, parts, out, 0, options);
    case Op::all_gatherv: return comm_.all_gatherv(in, out, parts, options);
    case Op::reduce_scatterv: return comm_.reduce_scatterv(in, parts, out, sum, options);
    default: return comm_.all_to_allv(in, parts, out, Parts{received_}, options);
  }
}

void Workload::expect_filled_by(const Choice& route, std::size_t begin, std::size_t count, double value) const {
  const std::size_t at = out_.first_other(begin, count, value, !compress::is_compressed(route.algorithm));
  if (at == begin + count) return;
  throw Error(ErrorKind::mismatch,
              fmt::format("{} of {} bytes in {} memory over {}{}{} gave a wrong value at element {}", name(op_),
                          bytes(), name(memory_), route.backend.empty() ? "auto" : route.backend,
                          route.algorithm.empty() ? "" : "/", route.algorithm, at));
}

void Workload::check(const Choice& route) {
  // The first calls of this size are routed by the sizes of earlier ones; measure the steady state.
  if (route.backend.empty() && core::has_local_counts(op_)) run(route, core::sizes_settle_after);
  dirty();
  run(route, 1);
  const int rank = comm_.rank(), size = comm_.size();
  const std::size_t count = out_.count();
  if (count == 0) return;
  out_.look();
  if (reduces(op_)) return expect_filled_by(route, 0, count, size * (size + 1) / 2);
  if (rooted(op_) && op_ != Op::gather && op_ != Op::gatherv) return expect_filled_by(route, 0, count, 1);
  if (op_ == Op::send || op_ == Op::recv) {
    if (size == 1 || rank % 2 == 1) expect_filled_by(route, 0, count, size == 1 ? 1 : rank);
    return;
  }
  std::size_t at = 0;
  for (int r = 0; r < size; ++r) {
    const auto part =
        static_cast<std::size_t>((op_ == Op::all_to_allv ? received_ : counts_)[static_cast<std::size_t>(r)]);
    expect_filled_by(route, at, part, r + 1);
    at += part;
  }
}

}  // namespace medley::tune
