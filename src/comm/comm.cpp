// The collectives of a comm with equal parts: checked, put into a Call, handed to the engine.
#include <medley/comm.hpp>

#include <fmt/format.h>

#include "comm/calls.hpp"

namespace medley {

using core::Checker;

using core::part_at;

core::CommState& Comm::state() const {
  if (!state_) throw Error(ErrorKind::invalid, "this Comm is empty: the calling rank is not a member of it");
  return *state_;
}

int Comm::rank() const noexcept { return state_ ? state_->rank : -1; }
int Comm::size() const noexcept { return state_ ? state_->size : 0; }

const std::string& Comm::name() const noexcept {
  static const std::string empty;
  return state_ ? state_->name : empty;
}

Work Comm::broadcast(const Buffer& buffer, int root, const Options& options) {
  Call call = core::broadcast_call(state(), buffer, root, options);
  return core::issue(state_, call, options);
}

Work Comm::reduce(const ConstBuffer& in, const Buffer& out, ReduceOp op, int root, const Options& options) {
  const Checker check{state(), Op::reduce};
  check.rank("root", root);
  check.buffer("input", in);
  check.reduction(in.dtype, op);
  Call call = core::call_of(Op::reduce, in.dtype, in.memory, options);
  call.reduce = op;
  call.root = root;
  call.in = in.data;
  call.in_count = in.count;
  if (rank() == root) {
    check.buffer("output", out);
    check.same_type(in, out);
    check.count("output", out.count, in.count, "as many as the input");
    check.overlap(in, out, in.data, out.data);
    call.out = out.data;
    call.out_count = out.count;
  }
  return core::issue(state_, call, options);
}

Work Comm::all_reduce(const ConstBuffer& in, const Buffer& out, ReduceOp op, const Options& options) {
  Call call = core::all_reduce_call(state(), in, out, op, options);
  return core::issue(state_, call, options);
}

Work Comm::gather(const ConstBuffer& in, const Buffer& out, int root, const Options& options) {
  const Checker check{state(), Op::gather};
  check.rank("root", root);
  check.buffer("input", in);
  Call call = core::call_of(Op::gather, in.dtype, in.memory, options);
  call.root = root;
  call.in = in.data;
  call.in_count = in.count;
  if (rank() == root) {
    check.buffer("output", out);
    check.same_type(in, out);
    check.count("output", out.count, in.count * size(), "the input of every rank");
    check.overlap(in, out, in.data, part_at(out.data, root, in.count, in.dtype));
    core::set_buffers(call, in, out);
  }
  return core::issue(state_, call, options);
}

Work Comm::all_gather(const ConstBuffer& in, const Buffer& out, const Options& options) {
  Call call = core::all_gather_call(state(), in, out, options);
  return core::issue(state_, call, options);
}

Work Comm::scatter(const ConstBuffer& in, const Buffer& out, int root, const Options& options) {
  const Checker check{state(), Op::scatter};
  check.rank("root", root);
  check.buffer("output", out);
  Call call = core::call_of(Op::scatter, out.dtype, out.memory, options);
  call.root = root;
  call.out = out.data;
  call.out_count = out.count;
  if (rank() == root) {
    check.buffer("input", in);
    check.same_type(in, out);
    check.count("input", in.count, out.count * size(), "the output of every rank");
    check.overlap(in, out, part_at(in.data, root, out.count, in.dtype), out.data);
    core::set_buffers(call, in, out);
  }
  return core::issue(state_, call, options);
}

Work Comm::reduce_scatter(const ConstBuffer& in, const Buffer& out, ReduceOp op, const Options& options) {
  Call call = core::reduce_scatter_call(state(), in, out, op, options);
  return core::issue(state_, call, options);
}

Work Comm::all_to_all(const ConstBuffer& in, const Buffer& out, const Options& options) {
  const Checker check{state(), Op::all_to_all};
  check.buffer("input", in);
  check.buffer("output", out);
  check.same_type(in, out);
  check.count("output", out.count, in.count, "as many as the input");
  if (in.count % size() != 0) {
    check.refuse(fmt::format("{} elements cannot be divided among {} ranks; use all_to_allv", in.count, size()));
  }
  check.overlap(in, out, in.data, out.data);
  Call call = core::call_of(Op::all_to_all, in.dtype, in.memory, options);
  core::set_buffers(call, in, out);
  return core::issue(state_, call, options);
}

Work Comm::barrier(const Options& options) { return barrier(Memory::host, options); }

Work Comm::barrier(Memory memory, const Options& options) {
  state();
  Call call = core::call_of(Op::barrier, DType::u8, memory, options);
  return core::issue(state_, call, options);
}

void Comm::abort() {
  state().engine->fail(*state_,
                       Error(ErrorKind::aborted, fmt::format("rank {} called abort", rank()), {.ranks = {rank()}}));
}

}  // namespace medley
