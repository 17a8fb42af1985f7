// Lists of tensors as one operation, and the scope that collects operations.
#include <fmt/format.h>

#include <medley/fuse.hpp>

#include "comm/calls.hpp"
#include "fuse/compose.hpp"
#include "fuse/footprint.hpp"

namespace medley {
namespace {

/// Names the first tensor that overlaps an earlier one.
void refuse_overlap(const core::Checker& check, const std::vector<fuse::Member>& members) {
  fuse::Footprint footprint;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (footprint.conflicts(members[i].call)) {
      check.refuse(fmt::format("tensor {} of the list overlaps an earlier one, and one of them is written", i));
    }
    footprint.add(members[i].call);
  }
}

/// Builds the calls of a list, checks that they do not overlap, and issues them.
template <class MakeCall>
Work issue_list(const std::shared_ptr<core::CommState>& comm, Op op, std::size_t tensors, const Options& options,
                MakeCall&& make_call) {
  if (tensors == 0) return {};
  const core::Checker check{*comm, op};
  if (options.feedback && tensors > 1) {
    check.refuse(fmt::format(
        "error feedback belongs to one tensor, but the list has {}; call each with its own ErrorFeedback in a fuse scope",
        tensors));
  }
  std::vector<fuse::Member> members;
  members.reserve(tensors);
  fuse::Overlaps overlaps;
  overlaps.reserve(tensors);
  for (std::size_t i = 0; i < tensors; ++i) {
    members.emplace_back(make_call(i), options);
    const Call& call = members.back().call;
    if (call.memory != members.front().call.memory) {
      check.refuse(fmt::format("tensor {} of the list is in {} memory, the first in {} memory", i, name(call.memory),
                               name(members.front().call.memory)));
    }
    overlaps.add(call);
  }
  if (overlaps.any()) refuse_overlap(check, members);
  if (comm->collector) comm->engine->flush_fused(comm);
  auto composed = fuse::compose(members, comm->rank, comm->size, comm->fuse_limits, fuse::Large::in_series);
  Work work(comm->engine->issue_list(comm, composed, options));
  if (options.async) return work;
  if (options.max_wait.count() == 0) {
    work.wait();
  } else {
    work.wait_for(options.max_wait);
  }
  return work;
}

void check_lengths(const core::CommState& comm, Op op, std::size_t in, std::size_t out) {
  if (in == out) return;
  core::Checker{comm, op}.refuse(fmt::format("the list of inputs has {} tensors and the list of outputs {}", in, out));
}

}  // namespace

Work Comm::broadcast(std::span<const Buffer> tensors, int root, const Options& options) {
  core::CommState& comm = state();
  return issue_list(state_, Op::broadcast, tensors.size(), options,
                    [&](std::size_t i) { return core::broadcast_call(comm, tensors[i], root, options); });
}

Work Comm::all_reduce(std::span<const Buffer> tensors, ReduceOp op, const Options& options) {
  core::CommState& comm = state();
  return issue_list(state_, Op::all_reduce, tensors.size(), options,
                    [&](std::size_t i) { return core::all_reduce_call(comm, tensors[i], tensors[i], op, options); });
}

Work Comm::all_reduce(std::span<const ConstBuffer> in, std::span<const Buffer> out, ReduceOp op,
                      const Options& options) {
  core::CommState& comm = state();
  check_lengths(comm, Op::all_reduce, in.size(), out.size());
  return issue_list(state_, Op::all_reduce, in.size(), options,
                    [&](std::size_t i) { return core::all_reduce_call(comm, in[i], out[i], op, options); });
}

Work Comm::all_gather(std::span<const ConstBuffer> in, std::span<const Buffer> out, const Options& options) {
  core::CommState& comm = state();
  check_lengths(comm, Op::all_gather, in.size(), out.size());
  return issue_list(state_, Op::all_gather, in.size(), options,
                    [&](std::size_t i) { return core::all_gather_call(comm, in[i], out[i], options); });
}

Work Comm::reduce_scatter(std::span<const ConstBuffer> in, std::span<const Buffer> out, ReduceOp op,
                          const Options& options) {
  core::CommState& comm = state();
  check_lengths(comm, Op::reduce_scatter, in.size(), out.size());
  return issue_list(state_, Op::reduce_scatter, in.size(), options,
                    [&](std::size_t i) { return core::reduce_scatter_call(comm, in[i], out[i], op, options); });
}

std::optional<Work> core::collect(const std::shared_ptr<CommState>& comm, const Call& call, const Options& options) {
  // Messages are not ordered with collectives, and ranks issue them at different places
  if (!is_collective(call.op)) return std::nullopt;
  if (options.async && fuse::fusable(call.op)) {
    // Larger tensors would travel alone in any case: they are issued at once, on all ranks alike, like outside the
    // scope.
    if (call.memory == Memory::host && !comm->fuses(call, options.backend)) return std::nullopt;
    return Work(comm->engine->collect(comm, call, options));
  }
  comm->engine->flush_fused(comm);
  return std::nullopt;
}

Fuse::Fuse(Comm comm) : comm_(std::move(comm)) {
  comm_.state();  // throws for an empty comm
  comm_.state_->engine->open_fuse(comm_.state_);
}

void Fuse::flush() { comm_.state_->engine->flush_fused(comm_.state_); }

Fuse::~Fuse() {
  try {
    comm_.state_->engine->close_fuse(comm_.state_);
  } catch (const Error&) {
    // The Works of the collected operations have it, and the comm's next call reports it.
  }
}

}  // namespace medley
