// The v-collectives: parts of different sizes.
#include <medley/comm.hpp>

#include "comm/check.hpp"
#include "comm/issue.hpp"

namespace medley {

using core::Checker;

namespace {

/// Counts and offsets in the form of a Call; parts without offsets are contiguous.
class PartList {
 public:
  PartList(const Parts& parts) : parts_(parts) {
    if (!parts.offsets.empty()) return;
    std::int64_t at = 0;
    for (std::int64_t count : parts.counts) {
      side_by_side_.push_back(at);
      at += count;
    }
  }
  const std::int64_t* counts() const { return parts_.counts.data(); }
  const std::int64_t* offsets() const { return parts_.offsets.empty() ? side_by_side_.data() : parts_.offsets.data(); }
  std::int64_t total() const {
    std::int64_t sum = 0;
    for (std::int64_t count : parts_.counts) sum += count;
    return sum;
  }
  const void* at(const void* base, int rank, DType dtype) const {
    return static_cast<const std::byte*>(base) + offsets()[rank] * static_cast<std::int64_t>(size_of(dtype));
  }

 private:
  const Parts& parts_;
  std::vector<std::int64_t> side_by_side_;
};

void give(Call& call, const ConstBuffer& in, const PartList& parts) {
  call.in = in.data;
  call.in_count = parts.total();
  call.in_counts = parts.counts();
  call.in_offsets = parts.offsets();
}

void take(Call& call, const Buffer& out, const PartList& parts) {
  call.out = out.data;
  call.out_count = parts.total();
  call.out_counts = parts.counts();
  call.out_offsets = parts.offsets();
}

}  // namespace

Work Comm::gatherv(const ConstBuffer& in, const Buffer& out, const Parts& out_parts, int root, const Options& options) {
  const Checker check{state(), Op::gatherv};
  check.rank("root", root);
  check.buffer("input", in);
  Call call = core::call_of(Op::gatherv, in.dtype, in.memory, options);
  call.root = root;
  call.in = in.data;
  call.in_count = in.count;
  if (rank() != root) return core::issue(state_, call, options);
  check.buffer("output", out);
  check.same_type(in, out);
  check.written_parts("the list of output parts", out, out_parts);
  check.count("input", in.count, out_parts.counts[static_cast<std::size_t>(root)], "its own part of the output");
  const PartList parts(out_parts);
  check.overlap(in, out, in.data, parts.at(out.data, root, in.dtype));
  take(call, out, parts);
  return core::issue(state_, call, options);
}

Work Comm::scatterv(const ConstBuffer& in, const Parts& in_parts, const Buffer& out, int root, const Options& options) {
  const Checker check{state(), Op::scatterv};
  check.rank("root", root);
  check.buffer("output", out);
  Call call = core::call_of(Op::scatterv, out.dtype, out.memory, options);
  call.root = root;
  call.out = out.data;
  call.out_count = out.count;
  if (rank() != root) return core::issue(state_, call, options);
  check.buffer("input", in);
  check.same_type(in, out);
  check.parts("the list of input parts", in, in_parts);
  check.count("output", out.count, in_parts.counts[static_cast<std::size_t>(root)], "its own part of the input");
  const PartList parts(in_parts);
  check.overlap(in, out, parts.at(in.data, root, in.dtype), out.data);
  give(call, in, parts);
  return core::issue(state_, call, options);
}

Work Comm::all_gatherv(const ConstBuffer& in, const Buffer& out, const Parts& out_parts, const Options& options) {
  const Checker check{state(), Op::all_gatherv};
  check.buffer("input", in);
  check.buffer("output", out);
  check.same_type(in, out);
  check.written_parts("the list of output parts", out, out_parts);
  check.count("input", in.count, out_parts.counts[static_cast<std::size_t>(rank())], "its own part of the output");
  const PartList parts(out_parts);
  check.overlap(in, out, in.data, parts.at(out.data, rank(), in.dtype));
  Call call = core::call_of(Op::all_gatherv, in.dtype, in.memory, options);
  call.in = in.data;
  call.in_count = in.count;
  take(call, out, parts);
  return core::issue(state_, call, options);
}

Work Comm::reduce_scatterv(const ConstBuffer& in, const Parts& in_parts, const Buffer& out, ReduceOp op,
                           const Options& options) {
  const Checker check{state(), Op::reduce_scatterv};
  check.buffer("input", in);
  check.buffer("output", out);
  check.same_type(in, out);
  check.reduction(in.dtype, op);
  check.parts("the list of input parts", in, in_parts);
  check.count("output", out.count, in_parts.counts[static_cast<std::size_t>(rank())], "its own part of the input");
  const PartList parts(in_parts);
  check.overlap(in, out, parts.at(in.data, rank(), in.dtype), out.data);
  Call call = core::call_of(Op::reduce_scatterv, in.dtype, in.memory, options);
  call.reduce = op;
  call.out = out.data;
  call.out_count = out.count;
  give(call, in, parts);
  return core::issue(state_, call, options);
}

Work Comm::all_to_allv(const ConstBuffer& in, const Parts& in_parts, const Buffer& out, const Parts& out_parts,
                       const Options& options) {
  const Checker check{state(), Op::all_to_allv};
  check.buffer("input", in);
  check.buffer("output", out);
  check.same_type(in, out);
  check.parts("the list of input parts", in, in_parts);
  check.written_parts("the list of output parts", out, out_parts);
  check.overlap(in, out, in.data, out.data);
  const PartList ins(in_parts), outs(out_parts);
  const auto me = static_cast<std::size_t>(rank());
  check.count("output's own part of the", out_parts.counts[me], in_parts.counts[me], "what this rank gives to itself");
  Call call = core::call_of(Op::all_to_allv, in.dtype, in.memory, options);
  give(call, in, ins);
  take(call, out, outs);
  return core::issue(state_, call, options);
}

}  // namespace medley
