#include "device/staged_plan.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "compress/spec.hpp"
#include "fuse/fusion.hpp"

namespace medley::core {
namespace {

constexpr std::int64_t header_bytes = sizeof(MessageHeader);

bool v_collective(Op op) { return op >= Op::gatherv; }

std::int64_t pieces_of(std::int64_t whole, std::int64_t step) {
  return std::max<std::int64_t>(1, (whole + step - 1) / step);
}

/// Pinned memory has few sizes, so that the pool can reuse it.
std::int64_t rounded(std::int64_t bytes) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 4096))));
}

/// Packs the parts contiguously from `at` on, in rank order; adds the copies and returns the end.
std::int64_t pack(std::vector<Copy>& copies, std::vector<std::int64_t>& offsets, const void* user,
                  const std::int64_t* counts, const std::int64_t* user_offsets, int ranks, std::int64_t element,
                  std::int64_t at) {
  auto* base = static_cast<std::byte*>(const_cast<void*>(user));
  const std::int64_t begin = at;
  for (int r = 0; r < ranks; ++r) {
    offsets.push_back((at - begin) / element);
    if (counts[r] > 0) copies.push_back({base + user_offsets[r] * element, at, counts[r] * element});
    at += counts[r] * element;
  }
  return at;
}

}  // namespace

bool StagedPlan::many_in() const {
  const Op op = call_.op;
  return op == Op::reduce_scatter || op == Op::all_to_all || op == Op::scatter;
}

bool StagedPlan::many_out() const {
  const Op op = call_.op;
  return op == Op::all_gather || op == Op::all_to_all || op == Op::gather;
}

StagedPlan::StagedPlan(const Call& call, int rank, int ranks)
    : call_(call), rank_(rank), ranks_(ranks), element_(static_cast<std::int64_t>(size_of(call.dtype))) {
  if (call.op == Op::send || call.op == Op::recv) {
    message_bytes_ = (call.op == Op::send ? call.in_count : call.out_count) * element_;
    pieces_ = call.op == Op::send ? pieces_of(message_bytes_, piece_bytes) : 1;
    room_ = rounded(header_bytes + std::min(message_bytes_, piece_bytes));
    return;
  }
  // Ranks do not know each other's counts, so they could not agree on the number of pieces
  if (v_collective(call.op)) {
    room_ = rounded((call.in_count + call.out_count) * element_);
    return;
  }
  if (call.list) {  // fused messages are short enough for one piece
    for (const FusedTensor& tensor : call.list->tensors) part_ += tensor.count;
    room_ = rounded(fuse::packed_sides(call, part_ * element_, rank, ranks).bytes);
    return;
  }
  const bool many = many_in() || many_out();
  // The element count of one part, from whichever side this rank has.
  const std::int64_t from_in = many_in() ? call.in_count / ranks : call.in_count;
  const std::int64_t from_out = many_out() ? call.out_count / ranks : call.out_count;
  part_ = call.op == Op::scatter || !call.in ? std::max(from_out, from_in) : from_in;
  step_ = std::max<std::int64_t>(1, piece_bytes / element_ / (many ? ranks : 1));
  // A compressed operation is one piece: blocks and residuals count from the start of the tensor, as on host memory.
  if (compress::is_compressed(call.algorithm)) step_ = std::max<std::int64_t>(1, part_);
  pieces_ = pieces_of(part_, step_);
  const std::int64_t longest = std::min(part_, step_) * element_;
  room_ = rounded(longest * ((many_in() ? ranks : 1) + (many_out() ? ranks : 1)));
}

bool StagedPlan::learn(const MessageHeader& header, int source) {
  fits_ = header.bytes <= message_bytes_;
  message_bytes_ = header.bytes;
  pieces_ = pieces_of(message_bytes_, piece_bytes);
  call_.root = source;
  return fits_;
}

Piece StagedPlan::piece(std::int64_t index, std::byte* memory) const {
  Piece made = call_.op == Op::send || call_.op == Op::recv ? message(index, memory)
               : call_.list                                 ? fused(memory)
               : v_collective(call_.op)                     ? unequal_parts(memory)
                                                            : equal_parts(index, memory);
  made.call.memory = Memory::host;
  made.call.stream = nullptr;
  made.call.dependencies = nullptr;
  return made;
}

Piece StagedPlan::equal_parts(std::int64_t index, std::byte* memory) const {
  Piece made{.call = call_, .in = {}, .out = {}, .parts = {}};
  const std::int64_t first = index * step_, count = std::min(step_, part_ - first), bytes = count * element_;
  const auto range = [&](const void* user, int part, std::int64_t at) {
    return Copy{static_cast<std::byte*>(const_cast<void*>(user)) + (part * part_ + first) * element_, at, bytes};
  };
  std::int64_t at = 0;
  if (call_.in) {
    made.call.in = memory;
    made.call.in_count = count * (many_in() ? ranks_ : 1);
    for (int part = 0; part < (many_in() ? ranks_ : 1) && bytes > 0; ++part, at += bytes) {
      made.in.push_back(range(call_.in, part, at));
    }
  }
  if (call_.op == Op::broadcast && call_.in && compress::is_compressed(call_.algorithm) && bytes > 0) {
    made.out.push_back(range(call_.in, 0, 0));  // the root gets what it sent, rounded as for everybody else
  }
  if (call_.out) {
    // In-place operations use the same memory for both sides: it stays in the cache.
    if (call_.op == Op::all_reduce || call_.op == Op::reduce) at = 0;
    made.call.out = memory + at;
    made.call.out_count = count * (many_out() ? ranks_ : 1);
    for (int part = 0; part < (many_out() ? ranks_ : 1) && bytes > 0; ++part, at += bytes) {
      made.out.push_back(range(call_.out, part, at));
    }
  }
  return made;
}

/// The tensors are copied to and from their places in the packed buffer, without packing them on the device first.
Piece StagedPlan::fused(std::byte* memory) const {
  Piece made{.call = call_, .in = {}, .out = {}, .parts = {}};
  const std::int64_t part_bytes = part_ * element_;
  const fuse::PackedSides sides = fuse::packed_sides(call_, part_bytes, rank_, ranks_);
  made.call.list = nullptr;
  const auto side = [&](std::vector<Copy>& copies, bool input, std::int64_t at) {
    fuse::each_copy(call_, call_.list->tensors, part_bytes, input, at, ranks_,
                    [&](std::byte* user, std::int64_t to, std::int64_t bytes) {
                      copies.push_back({user, to, bytes});
                    });
  };
  if (fuse::has_in(call_, rank_)) {
    made.call.in = memory + sides.in_at;
    side(made.in, true, sides.in_at);
  }
  if (fuse::has_out(call_, rank_)) {
    made.call.out = memory + sides.out_at;
    side(made.out, false, sides.out_at);
  }
  return made;
}

Piece StagedPlan::unequal_parts(std::byte* memory) const {
  Piece made{.call = call_, .in = {}, .out = {}, .parts = {}};
  made.parts.reserve(2 * static_cast<std::size_t>(ranks_));
  std::int64_t at = 0;
  if (call_.in) made.call.in = memory;
  if (call_.in_counts) {
    at = pack(made.in, made.parts, call_.in, call_.in_counts, call_.in_offsets, ranks_, element_, 0);
    made.call.in_offsets = made.parts.data();
  } else if (call_.in) {
    at = call_.in_count * element_;
    if (at > 0) made.in.push_back({static_cast<std::byte*>(const_cast<void*>(call_.in)), 0, at});
  }
  if (call_.out) made.call.out = memory + at;
  if (call_.out_counts) {
    const std::size_t lists = made.parts.size();
    pack(made.out, made.parts, call_.out, call_.out_counts, call_.out_offsets, ranks_, element_, at);
    made.call.out_offsets = made.parts.data() + lists;
  } else if (call_.out && call_.out_count > 0) {
    made.out.push_back({static_cast<std::byte*>(call_.out), at, call_.out_count * element_});
  }
  return made;
}

Piece StagedPlan::message(std::int64_t index, std::byte* memory) const {
  Piece made{.call = call_, .in = {}, .out = {}, .parts = {}};
  const std::int64_t header = index == 0 ? header_bytes : 0, first = index * piece_bytes;
  const std::int64_t bytes = std::min(piece_bytes, message_bytes_ - first);
  made.call.dtype = DType::u8;
  if (call_.op == Op::send) {
    const MessageHeader written{message_bytes_, 0};
    if (index == 0) std::memcpy(memory, &written, sizeof written);
    if (bytes > 0) made.in.push_back({static_cast<std::byte*>(const_cast<void*>(call_.in)) + first, header, bytes});
    made.call.in = memory;
    made.call.in_count = header + bytes;
  } else {
    made.call.out = memory;
    made.call.out_count = header + bytes;
    if (bytes > 0 && fits_) made.out.push_back({static_cast<std::byte*>(call_.out) + first, header, bytes});
  }
  return made;
}

}  // namespace medley::core
