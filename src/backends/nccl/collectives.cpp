#include "backends/nccl/collectives.hpp"

#include <algorithm>

#include "backends/cuda/cuda.hpp"
#include "backends/nccl/combine.hpp"
#include "backends/nccl/exchange.hpp"

namespace medley::nccl {
namespace {

// Scratch space on the device for the inputs of all ranks, in gathered reductions; longer ones take several rounds.
constexpr std::int64_t scratch_bytes = 64 << 20;

const std::byte* at(const void* base, std::int64_t elements, DType dtype) {
  return static_cast<const std::byte*>(base) + elements * static_cast<std::int64_t>(size_of(dtype));
}
std::byte* at(void* base, std::int64_t elements, DType dtype) {
  return static_cast<std::byte*>(base) + elements * static_cast<std::int64_t>(size_of(dtype));
}

/// The offset of rank r's part of a side, in elements.
struct Part {
  std::int64_t offset, count;
};
Part in_part(const Call& call, int r, int size) {
  if (call.in_counts) return {call.in_offsets[r], call.in_counts[r]};
  const std::int64_t each = call.in_count / size;
  return {r * each, each};
}
Part out_part(const Call& call, int r, int size) {
  if (call.out_counts) return {call.out_offsets[r], call.out_counts[r]};
  const std::int64_t each = call.out_count / size;
  return {r * each, each};
}

/// The large side of a gather, scatter, all_gather or all_to_all, one part for each rank.
bool exchange_parts(const CommView& view, const Call& call, const void* in) {
  const bool root = view.rank == call.root;
  const bool to_all = call.op == Op::all_to_all || call.op == Op::all_to_allv;
  const bool scatters = call.op == Op::scatter || call.op == Op::scatterv;
  const bool gathers = call.op == Op::gather || call.op == Op::gatherv;
  const Pattern pattern = gathers ? Pattern::to_root : scatters ? Pattern::from_root : Pattern::everybody;
  Exchange exchange(view, call.dtype, pattern, call.root);
  for (int r = 0; r < view.size; ++r) {
    const bool gives = to_all || (scatters ? root : gathers ? r == call.root : true);
    const bool takes = to_all || (scatters ? r == call.root : gathers ? root : true);
    const Part give = to_all || scatters ? (gives ? in_part(call, r, view.size) : Part{}) : Part{0, call.in_count};
    const Part take = to_all || !scatters ? (takes ? out_part(call, r, view.size) : Part{}) : Part{0, call.out_count};
    const void* const from = gives ? at(in, give.offset, call.dtype) : nullptr;
    void* const to = takes ? at(call.out, take.offset, call.dtype) : nullptr;
    if (r == view.rank && (!gives || !takes || to == from)) continue;  // it is already in place
    if (gives) exchange.send(from, r == view.rank ? take.count : give.count, r);
    if (takes) exchange.recv(to, take.count, r);
  }
  return exchange.close();
}

bool combined_by_nccl(const Call& call) { return combines(call.dtype, call.reduce) && !call.deterministic; }

bool in_place_exchange(const Call& call) {
  return (call.op == Op::all_to_all || call.op == Op::all_to_allv) && call.in == call.out && call.in_count > 0;
}

/// Stream-ordered device memory: neither allocating nor freeing it waits for a kernel.
class Scratch {
 public:
  Scratch(std::int64_t bytes, cudaStream_t stream) : stream_(stream) {
    cuda::check(cudaMallocAsync(&data_, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 16)), stream),
                "cudaMallocAsync");
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { cudaFreeAsync(data_, stream_); }
  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  void* data_ = nullptr;
  cudaStream_t stream_;
};

/// Sends every rank's elements [first, first + count) of what rank `of` combines to that rank; `of` < 0: to all.
bool gather_inputs(const CommView& view, const Call& call, std::byte* scratch, std::int64_t first, std::int64_t count,
                   int of) {
  Exchange exchange(view, call.dtype, of < 0 ? Pattern::everybody : Pattern::to_root, of);
  for (int r = 0; r < view.size; ++r) {
    const bool gives = of < 0 || of == r;  // rank r combines, so it needs mine
    const bool takes = of < 0 || of == view.rank;
    const void* mine = at(call.in, first, call.dtype);
    void* room = at(static_cast<void*>(scratch), r * count, call.dtype);
    if (gives) exchange.send(mine, count, r);
    if (takes) exchange.recv(room, count, r);
  }
  return exchange.close();
}

/// A reduction over gathered inputs: the parts of `owners` in sequence, each in rounds that fit the scratch.
Task gather_and_combine(const CommView view, const Call& call) {
  const bool scatters = call.op == Op::reduce_scatter || call.op == Op::reduce_scatterv;
  const auto element = static_cast<std::int64_t>(size_of(call.dtype));
  const std::int64_t round = std::max<std::int64_t>(1, scratch_bytes / element / view.size);
  std::int64_t longest = call.in_count;
  if (scatters) {
    longest = 0;
    for (int r = 0; r < view.size; ++r) longest = std::max(longest, in_part(call, r, view.size).count);
  }
  const Scratch scratch(std::min(round, longest) * view.size * element, view.stream);
  for (int owner = 0; owner < (scatters ? view.size : 1); ++owner) {
    const Part part = scatters ? in_part(call, owner, view.size) : Part{0, call.in_count};
    const int of = scatters ? owner : call.op == Op::reduce ? call.root : -1;
    for (std::int64_t done = 0; done < part.count; done += round) {
      const std::int64_t count = std::min(round, part.count - done);
      if (!gather_inputs(view, call, scratch.data(), part.offset + done, count, of)) {
        co_await until([&] { return view.comm.idle(); });
      }
      if (of < 0 || of == view.rank) {
        combine(at(call.out, done, call.dtype), scratch.data(), view.size, count, count, call.dtype, call.reduce,
                view.stream);
      }
    }
  }
}

Task exchange_in_place(const CommView view, const Call& call) {
  std::int64_t extent = call.in_count;
  for (int r = 0; r < view.size && call.in_counts; ++r) {
    extent = std::max(extent, call.in_offsets[r] + call.in_counts[r]);
  }
  const auto bytes = extent * static_cast<std::int64_t>(size_of(call.dtype));
  const Scratch copy(bytes, view.stream);
  cuda::check(
      cudaMemcpyAsync(copy.data(), call.in, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, view.stream),
      "cudaMemcpyAsync");
  if (!exchange_parts(view, call, copy.data())) {
    co_await until([&] { return view.comm.idle(); });
  }
}

/// One tensor of a fused collective as a call of its own.
Call single(const Call& call, const FusedTensor& tensor, int size) {
  Call one = call;
  one.list = nullptr;
  one.in = tensor.in;
  one.out = tensor.out;
  const bool many_in = call.op == Op::scatter || call.op == Op::reduce_scatter || call.op == Op::all_to_all;
  const bool many_out = call.op == Op::gather || call.op == Op::all_gather || call.op == Op::all_to_all;
  one.in_count = call.in_count == 0 ? 0 : tensor.count * (many_in ? size : 1);
  one.out_count = call.out_count == 0 ? 0 : tensor.count * (many_out ? size : 1);
  return one;
}

/// Whether NCCL has a call for the operation, so that a group of them is one launch. The others are groups of messages
/// each.
bool has_own_call(Op op) {
  return op == Op::broadcast || op == Op::all_reduce || op == Op::reduce || op == Op::reduce_scatter ||
         op == Op::all_gather;
}

/// A fused collective of which NCCL cannot make one launch: tensor after tensor.
Task one_by_one(const CommView view, const Call& call) {
  for (const FusedTensor& tensor : call.list->tensors) {
    const Call one = single(call, tensor, view.size);
    if (!one_launch(one)) {
      co_await steps(view, one);
    } else if (!launch(view, one)) {
      co_await until([&] { return view.comm.idle(); });
    }
  }
}

/// The tensors of a fused collective as one NCCL group, which is one launch.
bool launch_group(const CommView& view, const Call& call) {
  // A group continues in the background only where a communicator may: fast() returns when everything is in the stream.
  view.comm.accept(ncclGroupStart(), "ncclGroupStart");
  bool done = true;
  try {
    for (const FusedTensor& tensor : call.list->tensors) done = launch(view, single(call, tensor, view.size)) && done;
  } catch (...) {
    ncclGroupEnd();
    throw;
  }
  return view.comm.accept(ncclGroupEnd(), "ncclGroupEnd") && done;
}

}  // namespace

bool one_launch(const Call& call) {
  if (call.list) return has_own_call(call.op) && !(reduces(call.op) && !combined_by_nccl(call));
  return !(reduces(call.op) && !combined_by_nccl(call)) && !in_place_exchange(call);
}

bool launch(const CommView& view, const Call& call) {
  if (call.list) return launch_group(view, call);
  const auto type = arithmetic_type(call.dtype).value_or(ncclInt8);
  const auto op = reduction(call.reduce).value_or(ncclSum);
  const auto in_count = static_cast<std::size_t>(call.in_count), out_count = static_cast<std::size_t>(call.out_count);
  const ncclComm_t comm = view.comm.fast();
  switch (call.op) {
    case Op::broadcast: {
      const Moved moved(call.dtype, call.in_count + call.out_count);  // one of them is zero
      void* buffer = view.rank == call.root ? const_cast<void*>(call.in) : call.out;
      return view.comm.accept(ncclBroadcast(buffer, buffer, moved.count, moved.type, call.root, comm, view.stream),
                              "ncclBroadcast");
    }
    case Op::all_reduce:
      return view.comm.accept(ncclAllReduce(call.in, call.out, in_count, type, op, comm, view.stream), "ncclAllReduce");
    case Op::reduce:
      return view.comm.accept(ncclReduce(call.in, call.out, in_count, type, op, call.root, comm, view.stream),
                              "ncclReduce");
    case Op::reduce_scatter:
      return view.comm.accept(ncclReduceScatter(call.in, call.out, out_count, type, op, comm, view.stream),
                              "ncclReduceScatter");
    case Op::all_gather: {
      const Moved moved(call.dtype, call.in_count);
      return view.comm.accept(ncclAllGather(call.in, call.out, moved.count, moved.type, comm, view.stream),
                              "ncclAllGather");
    }
    case Op::barrier:
      return view.comm.accept(ncclAllReduce(view.token, view.token, 1, ncclInt8, ncclMax, comm, view.stream),
                              "ncclAllReduce");
    case Op::reduce_scatterv: {
      ncclGroupStart();
      ncclResult_t failed = ncclSuccess;
      for (int r = 0; r < view.size; ++r) {
        const Part part = in_part(call, r, view.size);
        if (part.count == 0) continue;
        const ncclResult_t result = ncclReduce(at(call.in, part.offset, call.dtype), call.out,
                                               static_cast<std::size_t>(part.count), type, op, r, comm, view.stream);
        if (result != ncclSuccess && failed == ncclSuccess) failed = result;
      }
      const ncclResult_t ended = ncclGroupEnd();
      return view.comm.accept(failed != ncclSuccess ? failed : ended, "ncclReduce");
    }
    default: return exchange_parts(view, call, call.in);
  }
}

Task steps(const CommView view, const Call& call) {
  if (call.list) return one_by_one(view, call);
  return reduces(call.op) ? gather_and_combine(view, call) : exchange_in_place(view, call);
}

}  // namespace medley::nccl
