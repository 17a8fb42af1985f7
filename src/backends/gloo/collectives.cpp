#include "backends/gloo/collectives.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/reduce.h>
#include <gloo/scatter.h>

#include <algorithm>
#include <cstring>
#include <medley/sdk/reduce.hpp>

#include "backends/gloo/collective_options.hpp"
#include "backends/gloo/no_pipe_signal.hpp"

namespace medley::gloo_backend {
namespace {

/// The count that all ranks must agree on: the tensor's, or one rank's part of it.
std::int64_t common_count(const Call& call) {
  switch (call.op) {
    case Op::broadcast: return std::max(call.in_count, call.out_count);
    case Op::scatter: return call.out_count;
    default: return call.in_count;
  }
}

/// Whether no rank has data to move. Gloo divides by the size in some of these. Ranks still meet in them, so that a
/// rank that does have data is noticed.
bool empty(const Call& call, int ranks) {
  if (call.op == Op::all_to_allv || call.op == Op::barrier) return false;
  if (call.op != Op::all_gatherv) return common_count(call) == 0;
  return std::all_of(call.out_counts, call.out_counts + ranks, [](std::int64_t count) { return count == 0; });
}

std::string in_words(const Call& call, int ranks) {
  std::string words(name(call.op));
  if (call.op == Op::barrier) return words;
  words += fmt::format(" ({}", name(call.dtype));
  if (call.op == Op::all_gatherv) {
    words += fmt::format(", counts {}", fmt::join(call.out_counts, call.out_counts + ranks, "+"));
  } else if (call.op != Op::all_to_allv) {
    words += fmt::format(", count {}", common_count(call));
  }
  if (reduces(call.op)) words += fmt::format(", {}", name(call.reduce));
  if (rooted(call.op)) words += fmt::format(", root {}", call.root);
  return words + ")";
}

/// Ranks that call different operations get different tags, so that their data never mixes: Gloo ends the process when
/// a message is longer than the buffer that waits for it.
std::uint32_t hash(std::string_view text, std::uint64_t start) {
  std::uint64_t h = 0xcbf29ce484222325u ^ start * 0x9e3779b97f4a7c15u;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return static_cast<std::uint32_t>(h ^ h >> 32);
}

/// Calls use with an integer as wide as the call's elements: Gloo only moves them; the reduction function interprets
/// them.
template <class Use>
void with_width(DType dtype, Use use) {
  switch (size_of(dtype)) {
    case 1: return use(std::uint8_t{});
    case 2: return use(std::uint16_t{});
    case 4: return use(std::uint32_t{});
    default: return use(std::uint64_t{});
  }
}

auto combiner(const Call& call) {
  const ReduceFn combine = reducer(call.dtype, call.reduce);
  return [combine](void* out, const void* a, const void* b, std::size_t count) {
    const void* both[] = {a, b};
    combine(out, both, 2, count, 1, false);
  };
}

/// Gloo has no average: its sum is divided.
void divide(const Call& call, int ranks) {
  if (call.reduce != ReduceOp::avg) return;
  const void* sum = call.out;
  reducer(call.dtype, call.reduce)(call.out, &sum, 1, static_cast<std::size_t>(call.out_count), ranks, false);
}

}  // namespace

bool has_collective(Op op, DType dtype, ReduceOp reduce) {
  switch (op) {
    case Op::broadcast:
    case Op::gather:
    case Op::all_gather:
    case Op::scatter:
    case Op::all_to_all:
    case Op::barrier:
    case Op::all_gatherv:
    case Op::all_to_allv: return true;
    case Op::reduce:
    case Op::all_reduce: {
      const bool bitwise = reduce == ReduceOp::band || reduce == ReduceOp::bor || reduce == ReduceOp::bxor;
      const bool rounded = dtype == DType::f16 || dtype == DType::bf16;
      return !bitwise && !rounded && dtype != DType::boolean && reducible(dtype, reduce);
    }
    default: return false;
  }
}

int Collectives::perform(const Call& call, Deadline) {
  const NoPipeSignal quiet;
  const std::string words = in_words(call, mesh_->size);
  matcher_->begin_collective({++number_, hash(words, 0), words});
  try {
    dispatch(call, hash(words, number_));
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw matcher_->explain(error.what());
  }
  matcher_->end_collective();
  return -1;
}

void Collectives::dispatch(const Call& call, std::uint32_t tag) {
  switch (empty(call, mesh_->size) ? Op::barrier : call.op) {
    case Op::broadcast: return broadcast(call, tag);
    case Op::reduce: return reduce(call, tag);
    case Op::all_reduce: return all_reduce(call, tag);
    case Op::gather: return gather(call, tag);
    case Op::all_gather: return all_gather(call, tag);
    case Op::all_gatherv: return all_gatherv(call, tag);
    case Op::scatter: return scatter(call, tag);
    case Op::all_to_all: return all_to_all(call, tag);
    case Op::all_to_allv: return all_to_allv(call, tag);
    case Op::barrier: {
      ::gloo::BarrierOptions options(mesh_);
      prepare(options, tag);
      return ::gloo::barrier(options);
    }
    default: throw std::logic_error("gloo was given an operation that it does not have");
  }
}

void Collectives::stop(const Error& why) noexcept {
  stopping_ = true;
  matcher_->abort(why);
}

bool Collectives::poll_stop() noexcept {
  if (!stopping_) return true;
  if (!matcher_->goodbye_over()) return false;
  mesh_->sever();  // only now: it cuts the connections that the goodbye uses
  stopping_ = false;
  return true;
}

void Collectives::broadcast(const Call& call, std::uint32_t tag) {
  ::gloo::BroadcastOptions options(mesh_);
  prepare(options, tag);
  options.setRoot(call.root);
  options.setOutput(mesh_->rank == call.root ? in_of(call) : out_of(call), bytes_of(call, common_count(call)));
  ::gloo::broadcast(options);
}

void Collectives::reduce(const Call& call, std::uint32_t tag) {
  const auto count = static_cast<std::size_t>(call.in_count);
  std::vector<char> spare;  // every rank needs space for parts of the result
  if (mesh_->rank != call.root) spare.resize(bytes_of(call, call.in_count));
  char* out = mesh_->rank == call.root ? out_of(call) : spare.data();
  with_width(call.dtype, [&]<class T>(T) {
    ::gloo::ReduceOptions options(mesh_);
    prepare(options, tag);
    options.setRoot(call.root);
    if (out != call.in) options.setInput(reinterpret_cast<T*>(in_of(call)), count);
    options.setOutput(reinterpret_cast<T*>(out), count);
    options.setReduceFunction(combiner(call));
    ::gloo::reduce(options);
  });
  if (mesh_->rank == call.root) divide(call, mesh_->size);
}

void Collectives::all_reduce(const Call& call, std::uint32_t tag) {
  const auto count = static_cast<std::size_t>(call.out_count);
  with_width(call.dtype, [&]<class T>(T) {
    ::gloo::AllreduceOptions options(mesh_);
    prepare(options, tag);
    if (call.out != call.in) options.setInput(reinterpret_cast<T*>(in_of(call)), count);
    options.setOutput(reinterpret_cast<T*>(out_of(call)), count);
    options.setReduceFunction(combiner(call));
    ::gloo::allreduce(options);
  });
  divide(call, mesh_->size);
}

void Collectives::gather(const Call& call, std::uint32_t tag) {
  ::gloo::GatherOptions options(mesh_);
  prepare(options, tag);
  options.setRoot(call.root);
  options.setInput(in_of(call), bytes_of(call, call.in_count));
  if (mesh_->rank == call.root) options.setOutput(out_of(call), bytes_of(call, call.out_count));
  ::gloo::gather(options);
}

void Collectives::all_gather(const Call& call, std::uint32_t tag) {
  const std::size_t part = bytes_of(call, call.in_count);
  ::gloo::AllgatherOptions options(mesh_);
  prepare(options, tag);
  if (in_of(call) != out_of(call) + static_cast<std::size_t>(mesh_->rank) * part) options.setInput(in_of(call), part);
  options.setOutput(out_of(call), bytes_of(call, call.out_count));
  ::gloo::allgather(options);
}

void Collectives::scatter(const Call& call, std::uint32_t tag) {
  const std::size_t part = bytes_of(call, call.out_count);
  ::gloo::ScatterOptions options(mesh_);
  prepare(options, tag);
  options.setRoot(call.root);
  if (mesh_->rank == call.root) {
    std::vector<char*> parts;
    for (int r = 0; r < mesh_->size; ++r) parts.push_back(in_of(call) + static_cast<std::size_t>(r) * part);
    options.setInputs(parts, part);
  }
  options.setOutput(out_of(call), part);
  ::gloo::scatter(options);
}

void Collectives::all_to_all(const Call& call, std::uint32_t tag) {
  const std::size_t bytes = bytes_of(call, call.in_count);
  std::vector<char> copy;  // in place, incoming data would overwrite what is not sent yet
  if (call.in == call.out) copy.assign(in_of(call), in_of(call) + bytes);
  ::gloo::AlltoallOptions options(mesh_);
  prepare(options, tag);
  options.setInput(copy.empty() ? in_of(call) : copy.data(), bytes);
  options.setOutput(out_of(call), bytes);
  ::gloo::alltoall(options);
}

}  // namespace medley::gloo_backend
