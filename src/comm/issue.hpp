// From checked arguments to the engine; shared by all operations of Comm.
#pragma once

#include <medley/backend.hpp>
#include <medley/comm.hpp>

#include "engine/engine.hpp"

namespace medley::core {

/// An empty call. Copied from where the compiler cannot see it (check.cpp): otherwise it would write the zeros with a string
/// instruction, which takes 4 ns longer.
extern const Call blank_call;

/// Filled in place: copying a struct that was just written stalls the processor, noticeably for a small operation.
inline Call call_of(Op op, DType dtype, Memory memory, const Options& options) {
  Call call = blank_call;
  call.op = op;
  call.dtype = dtype;
  call.memory = memory;
  call.deterministic = options.deterministic;
  call.tag = options.tag;
  call.stream = options.stream;
  call.algorithm = options.algorithm;
  return call;
}

inline void set_buffers(Call& call, const ConstBuffer& in, const Buffer& out) {
  call.in = in.data;
  call.in_count = in.count;
  call.out = out.data;
  call.out_count = out.count;
}

inline Work issue(const std::shared_ptr<CommState>& comm, Call& call, const Options& options,
                  int* source = nullptr) {
  int from = -1;
  Operation* pending = comm->engine->issue(comm, call, options, from);
  if (source) *source = from;
  return pending ? Work(pending) : Work();
}

}  // namespace medley::core
