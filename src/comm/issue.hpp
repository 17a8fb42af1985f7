// From checked arguments to the engine; shared by all operations of Comm.
#pragma once

#include <medley/backend.hpp>
#include <medley/comm.hpp>
#include <optional>

#include "engine/engine.hpp"

namespace medley::core {

/// An empty call. Copied from where the compiler cannot see it (check.cpp): otherwise it would write the zeros with a
/// string instruction, which takes 4 ns longer.
extern const Call blank_call;

/// Throws Error(invalid) where the codec is unknown, or an algorithm is named beside it.
void set_compression(Call& call, const Options& options);

/// Filled in place: copying a struct that was just written stalls the processor, noticeably for a small operation.
[[gnu::always_inline]] inline Call call_of(Op op, DType dtype, Memory memory, const Options& options) {
  Call call = blank_call;
  call.op = op;
  call.dtype = dtype;
  call.memory = memory;
  call.deterministic = options.deterministic;
  call.tag = options.tag;
  call.stream = options.stream;
  call.algorithm = options.algorithm;
  if (!options.compress.empty() || options.feedback) [[unlikely]]
    set_compression(call, options);
  return call;
}

inline void set_buffers(Call& call, const ConstBuffer& in, const Buffer& out) {
  call.in = in.data;
  call.in_count = in.count;
  call.out = out.data;
  call.out_count = out.count;
}

/// While a fuse scope is open on the comm: the Work of a call that it collects. An empty one for a call to issue now,
/// after what was collected before it.
std::optional<Work> collect(const std::shared_ptr<CommState>& comm, const Call& call, const Options& options);

[[gnu::always_inline]] inline Work issue(const std::shared_ptr<CommState>& comm, Call& call, const Options& options,
                                         int* source = nullptr) {
  if (comm->collector) [[unlikely]] {
    if (auto collected = collect(comm, call, options)) return *std::move(collected);
  }
  int from = -1;
  // Known where the compiler inlines this
  const bool message = call.memory == Memory::host && !is_collective(call.op);
  Operation* pending =
      message ? comm->engine->issue_message(comm, call, options, from) : comm->engine->issue(comm, call, options, from);
  if (source) *source = from;
  return pending ? Work(pending) : Work();
}

}  // namespace medley::core
