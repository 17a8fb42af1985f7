#include "fuse/fusion.hpp"

namespace medley::fuse {

void Fusion::add(const Call& call, int rank, int ranks) {
  const std::int64_t count = part_count(call, rank, ranks);
  tensors_.push_back({has_in(call, rank) ? call.in : nullptr, has_out(call, rank) ? call.out : nullptr, count});
  part_ += count;
}

Call Fusion::call_like(const Call& like, int rank, int ranks) const {
  Call call = like;
  call.in = nullptr;
  call.out = nullptr;
  call.in_count = has_in(call, rank) ? part_ * (many_in(call.op) ? ranks : 1) : 0;
  call.out_count = has_out(call, rank) ? part_ * (many_out(call.op) ? ranks : 1) : 0;
  return call;
}

Call Fusion::call_of(const FusedTensor& tensor, const Call& message, int ranks) {
  Call call = message;
  set_tensor(call, tensor, ranks);
  return call;
}

void Fusion::set_tensor(Call& call, const FusedTensor& tensor, int ranks) {
  call.in = tensor.in;
  call.out = tensor.out;
  call.in_count = tensor.in ? tensor.count * (many_in(call.op) ? ranks : 1) : 0;
  call.out_count = tensor.out ? tensor.count * (many_out(call.op) ? ranks : 1) : 0;
}

std::uint64_t Fusion::layout() const {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a over the counts
  for (const FusedTensor& tensor : tensors_) hash = (hash ^ static_cast<std::uint64_t>(tensor.count)) * 0x100000001b3;
  return hash;
}

PackedSides packed_sides(const Call& call, std::int64_t part_bytes, int rank, int ranks) {
  const std::int64_t all = part_bytes * ranks, own = part_bytes * rank;
  switch (call.op) {
    case Op::all_gather: return {own, 0, all};
    case Op::reduce_scatter: return {0, own, all};
    case Op::gather: return rank == call.root ? PackedSides{own, 0, all} : PackedSides{0, 0, part_bytes};
    case Op::scatter: return rank == call.root ? PackedSides{0, own, all} : PackedSides{0, 0, part_bytes};
    case Op::all_to_all: return {0, all, 2 * all};  // in place, every backend would need scratch memory of its own
    default: return {0, 0, part_bytes};
  }
}

}  // namespace medley::fuse
