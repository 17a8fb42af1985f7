#include "backends/mpi/collectives.hpp"

#include <algorithm>
#include <cstring>

#include "backends/mpi/errors.hpp"
#include "backends/mpi/reductions.hpp"

namespace medley::mpi {
namespace {

/// Calls piece(offset, length) for consecutive pieces of at most `chunk`.
template <class Piece>
void in_pieces(std::int64_t total, std::int64_t chunk, Piece piece) {
  for (std::int64_t at = 0; at < total; at += chunk) piece(at, std::min(chunk, total - at));
}

/// Elements reduced by MPI: where the type and the operation say how they combine.
struct Reduction {
  Reduction(const Call& call)
      : element(static_cast<std::int64_t>(size_of(call.dtype))),
        type(type_of(call.dtype)),
        operation(operation_of(call.reduce)) {}
  std::int64_t element;
  MPI_Datatype type;
  MPI_Op operation;
};

// MPI requires MPI_IN_PLACE on all ranks or on none, and Open MPI chooses its algorithm by it; in Medley every rank
// places its buffers freely. So the input is first copied to where MPI_IN_PLACE expects it, as MPI itself does
// otherwise.

void all_reduce(const CommView& view, const Call& call, MpiTransfer& transfer) {
  const Reduction r(call);
  if (call.in != call.out && call.out_count > 0)
    std::memcpy(call.out, call.in, static_cast<std::size_t>(call.out_count * r.element));
  in_pieces(call.out_count, view.chunk, [&](std::int64_t at, std::int64_t count) {
    check(MPI_Iallreduce(MPI_IN_PLACE, bytes_at(call.out, at * r.element), static_cast<int>(count), r.type, r.operation,
                         view.comm, transfer.request()),
          "MPI_Iallreduce");
  });
}

/// Reduces `count` elements at `in` to `out` on rank `root`.
void reduce_to(const CommView& view, const Reduction& r, const void* in, void* out, std::int64_t count, int root,
               MpiTransfer& transfer) {
  in_pieces(count, view.chunk, [&](std::int64_t at, std::int64_t length) {
    const bool here = view.rank == root;
    const void* from = here && in == out ? MPI_IN_PLACE : bytes_at(in, at * r.element);
    void* to = here ? bytes_at(out, at * r.element) : nullptr;
    check(MPI_Ireduce(from, to, static_cast<int>(length), r.type, r.operation, root, view.comm, transfer.request()),
          "MPI_Ireduce");
  });
}

void reduce_scatter(const CommView& view, const Call& call, MpiTransfer& transfer) {
  const Reduction r(call);
  const std::int64_t count = call.out_count;
  const auto bytes = static_cast<std::size_t>(count * r.element);
  void* out = call.out;
  if (out == bytes_at(call.in, view.rank * count * r.element)) {
    // In place, Medley's result is where this rank's part was, MPI's at the beginning of the input.
    out = transfer.stage(bytes);
    transfer.copy_back(call.out, 0, bytes);
  }
  if (count * view.size <= view.chunk) {
    check(MPI_Ireduce_scatter_block(call.in, out, static_cast<int>(count), r.type, r.operation, view.comm,
                                    transfer.request()),
          "MPI_Ireduce_scatter_block");
    return;
  }
  for (int root = 0; root < view.size; ++root)
    reduce_to(view, r, bytes_at(call.in, root * count * r.element), out, count, root, transfer);
}

/// The four that move equal parts. One call where it fits; otherwise chunks of every part, which are `part` bytes apart
/// on the side that has all of them.
struct RankSlots {
  RankSlots(const CommView& view, std::int64_t part_bytes) : part(part_bytes) {
    slot = part * view.size <= view.chunk ? part : std::max<std::int64_t>(view.chunk / view.size, 1);
  }
  template <class Start>
  void each(Start start) const {
    if (slot == part && part > 0) {
      const Bulk plain(part, part);
      return start(std::int64_t{0}, plain, plain);
    }
    in_pieces(part, slot, [&](std::int64_t at, std::int64_t length) {
      start(at, Bulk(length, length), Bulk::strided(length, part));
    });
  }
  std::int64_t part, slot;
};

void gather(const CommView& view, const Call& call, MpiTransfer& transfer) {
  const RankSlots slots(view, call.in_count * static_cast<std::int64_t>(size_of(call.dtype)));
  const bool root = view.rank == call.root;
  const bool in_place = root && call.in == bytes_at(call.out, view.rank * slots.part);
  slots.each([&](std::int64_t at, const Bulk& one, const Bulk& all) {
    const void* in = in_place ? MPI_IN_PLACE : bytes_at(call.in, at);
    check(MPI_Igather(in, one.count(), one.type(), root ? bytes_at(call.out, at) : nullptr, all.count(), all.type(),
                      call.root, view.comm, transfer.request()),
          "MPI_Igather");
  });
}

void scatter(const CommView& view, const Call& call, MpiTransfer& transfer) {
  const RankSlots slots(view, call.out_count * static_cast<std::int64_t>(size_of(call.dtype)));
  const bool root = view.rank == call.root;
  const bool in_place = root && call.out == bytes_at(call.in, view.rank * slots.part);
  slots.each([&](std::int64_t at, const Bulk& one, const Bulk& all) {
    void* out = in_place ? MPI_IN_PLACE : bytes_at(call.out, at);
    check(MPI_Iscatter(root ? bytes_at(call.in, at) : nullptr, all.count(), all.type(), out, one.count(), one.type(),
                       call.root, view.comm, transfer.request()),
          "MPI_Iscatter");
  });
}

void all_gather(const CommView& view, const Call& call, MpiTransfer& transfer) {
  const RankSlots slots(view, call.in_count * static_cast<std::int64_t>(size_of(call.dtype)));
  std::byte* own = bytes_at(call.out, view.rank * slots.part);
  if (call.in != own && slots.part > 0) std::memcpy(own, call.in, static_cast<std::size_t>(slots.part));
  slots.each([&](std::int64_t at, const Bulk& one, const Bulk& all) {
    check(MPI_Iallgather(MPI_IN_PLACE, one.count(), one.type(), bytes_at(call.out, at), all.count(), all.type(),
                         view.comm, transfer.request()),
          "MPI_Iallgather");
  });
}

void all_to_all(const CommView& view, const Call& call, MpiTransfer& transfer) {
  const RankSlots slots(view, call.in_count / view.size * static_cast<std::int64_t>(size_of(call.dtype)));
  const void* in = call.in;
  if (call.in == call.out && slots.part > 0) {
    const auto bytes = static_cast<std::size_t>(slots.part * view.size);
    in = std::memcpy(transfer.stage(bytes), call.in, bytes);
  }
  slots.each([&](std::int64_t at, const Bulk&, const Bulk& all) {
    check(MPI_Ialltoall(bytes_at(in, at), all.count(), all.type(), bytes_at(call.out, at), all.count(), all.type(),
                        view.comm, transfer.request()),
          "MPI_Ialltoall");
  });
}

}  // namespace

void broadcast_bytes(const CommView& view, void* data, std::int64_t bytes, int root, MpiTransfer& transfer) {
  in_pieces(bytes, view.chunk, [&](std::int64_t at, std::int64_t length) {
    check(MPI_Ibcast(bytes_at(data, at), static_cast<int>(length), MPI_BYTE, root, view.comm, transfer.request()),
          "MPI_Ibcast");
  });
}

bool collective_is_native(Op op) { return op != Op::gatherv && op != Op::scatterv && op != Op::reduce_scatterv; }

void start_collective(const CommView& view, const Call& call, MpiTransfer& transfer) {
  switch (call.op) {
    case Op::broadcast:
      return broadcast_bytes(view, call.out ? call.out : const_cast<void*>(call.in),
                             std::max(call.in_count, call.out_count) * static_cast<std::int64_t>(size_of(call.dtype)),
                             call.root, transfer);
    case Op::reduce: return reduce_to(view, Reduction(call), call.in, call.out, call.in_count, call.root, transfer);
    case Op::all_reduce: return all_reduce(view, call, transfer);
    case Op::reduce_scatter: return reduce_scatter(view, call, transfer);
    case Op::gather: return gather(view, call, transfer);
    case Op::scatter: return scatter(view, call, transfer);
    case Op::all_gather: return all_gather(view, call, transfer);
    case Op::all_to_all: return all_to_all(view, call, transfer);
    case Op::barrier: return check(MPI_Ibarrier(view.comm, transfer.request()), "MPI_Ibarrier");
    case Op::all_gatherv: return all_gatherv(view, call, transfer);
    case Op::all_to_allv: return all_to_allv(view, call, transfer);
    default: throw Error(ErrorKind::system, "mpi was given an operation that it does not do itself");
  }
}

}  // namespace medley::mpi
