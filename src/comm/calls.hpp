// The checked calls of the collectives that also take lists of tensors. Inline: a small operation notices a copy of its
// Call.
#pragma once

#include "comm/check.hpp"
#include "comm/issue.hpp"

namespace medley::core {

inline const std::byte* part_at(const void* base, std::int64_t index, std::int64_t count, DType dtype) {
  return static_cast<const std::byte*>(base) + index * count * static_cast<std::int64_t>(size_of(dtype));
}

inline Call broadcast_call(const CommState& comm, const Buffer& buffer, int root, const Options& options) {
  const Checker check{comm, Op::broadcast};
  check.rank("root", root);
  check.buffer("broadcast", buffer);
  Call call = call_of(Op::broadcast, buffer.dtype, buffer.memory, options);
  call.root = root;
  (comm.rank == root ? call.in_count : call.out_count) = buffer.count;
  if (comm.rank == root) {
    call.in = buffer.data;
  } else {
    call.out = buffer.data;
  }
  return call;
}

inline Call all_reduce_call(const CommState& comm, const ConstBuffer& in, const Buffer& out, ReduceOp op,
                            const Options& options) {
  const Checker check{comm, Op::all_reduce};
  check.buffer("input", in);
  check.buffer("output", out);
  check.same_type(in, out);
  check.reduction(in.dtype, op);
  check.count("output", out.count, in.count, "as many as the input");
  check.overlap(in, out, in.data, out.data);
  Call call = call_of(Op::all_reduce, in.dtype, in.memory, options);
  call.reduce = op;
  set_buffers(call, in, out);
  return call;
}

inline Call all_gather_call(const CommState& comm, const ConstBuffer& in, const Buffer& out, const Options& options) {
  const Checker check{comm, Op::all_gather};
  check.buffer("input", in);
  check.buffer("output", out);
  check.same_type(in, out);
  check.count("output", out.count, in.count * comm.size, "the input of every rank");
  check.overlap(in, out, in.data, part_at(out.data, comm.rank, in.count, in.dtype));
  Call call = call_of(Op::all_gather, in.dtype, in.memory, options);
  set_buffers(call, in, out);
  return call;
}

inline Call reduce_scatter_call(const CommState& comm, const ConstBuffer& in, const Buffer& out, ReduceOp op,
                                const Options& options) {
  const Checker check{comm, Op::reduce_scatter};
  check.buffer("input", in);
  check.buffer("output", out);
  check.same_type(in, out);
  check.reduction(in.dtype, op);
  check.count("input", in.count, out.count * comm.size, "the output of every rank");
  check.overlap(in, out, part_at(in.data, comm.rank, out.count, in.dtype), out.data);
  Call call = call_of(Op::reduce_scatter, in.dtype, in.memory, options);
  call.reduce = op;
  set_buffers(call, in, out);
  return call;
}

}  // namespace medley::core
