// all_gatherv and all_to_allv: parts of different sizes, whose counts and offsets MPI takes as ints.
#include <algorithm>
#include <cstring>
#include <limits>

#include "backends/mpi/collectives.hpp"
#include "backends/mpi/errors.hpp"

namespace medley::mpi {
namespace {

constexpr std::int64_t int_max = std::numeric_limits<int>::max();

/// One side of a v-collective, in bytes.
class Parts {
 public:
  Parts(const std::int64_t* counts, const std::int64_t* offsets, int size, DType dtype)
      : counts_(counts), offsets_(offsets), size_(size), element_(static_cast<std::int64_t>(size_of(dtype))) {}
  std::int64_t bytes(int r) const { return counts_[r] * element_; }
  std::int64_t offset(int r) const { return offsets_[r] * element_; }
  std::int64_t total() const {
    std::int64_t sum = 0;
    for (int r = 0; r < size_; ++r) sum += bytes(r);
    return sum;
  }
  /// The end of the last part.
  std::int64_t extent() const {
    std::int64_t end = 0;
    for (int r = 0; r < size_; ++r) end = std::max(end, bytes(r) > 0 ? offset(r) + bytes(r) : 0);
    return end;
  }
  int size() const { return size_; }

 private:
  const std::int64_t* counts_;
  const std::int64_t* offsets_;
  int size_;
  std::int64_t element_;
};

/// Counts, offsets and types of one side of MPI_Ialltoallw, whose offsets are bytes. A part that exceeds ints becomes a
/// type with its offset inside.
struct Side {
  Side(const CommView& view, const Parts& parts, MpiTransfer& transfer) {
    const auto n = static_cast<std::size_t>(parts.size());
    counts = transfer.numbers(n);
    offsets = transfer.numbers(n);
    types = transfer.types(n);
    for (int r = 0; r < parts.size(); ++r) {
      if (parts.bytes(r) <= view.chunk && parts.offset(r) <= int_max) {
        counts[r] = static_cast<int>(parts.bytes(r));
        offsets[r] = static_cast<int>(parts.offset(r));
        continue;
      }
      const Bulk& bulk = transfer.keep(Bulk(parts.bytes(r), view.chunk, parts.offset(r)));
      counts[r] = bulk.count();
      types[r] = bulk.type();
    }
  }
  int *counts, *offsets;
  MPI_Datatype* types;
};

}  // namespace

void all_gatherv(const CommView& view, const Call& call, MpiTransfer& transfer) {
  const Parts parts(call.out_counts, call.out_offsets, view.size, call.dtype);
  const std::int64_t own = parts.bytes(view.rank);
  std::byte* own_place = bytes_at(call.out, parts.offset(view.rank));
  // Every rank knows all counts, so all decide alike; offsets are local to each rank.
  if (call.in != own_place && own > 0) std::memcpy(own_place, call.in, static_cast<std::size_t>(own));
  if (parts.total() > view.chunk) {
    for (int r = 0; r < view.size; ++r)
      broadcast_bytes(view, bytes_at(call.out, parts.offset(r)), parts.bytes(r), r, transfer);
    return;
  }
  const auto n = static_cast<std::size_t>(view.size);
  int *counts = transfer.numbers(n), *offsets = transfer.numbers(n);
  const bool packed = parts.extent() > int_max;
  std::byte* out = packed ? transfer.stage(static_cast<std::size_t>(parts.total())) : bytes_at(call.out, 0);
  std::int64_t at = 0;
  for (int r = 0; r < view.size; ++r) {
    if (packed && r == view.rank && own > 0) std::memcpy(out + at, own_place, static_cast<std::size_t>(own));
    counts[r] = static_cast<int>(parts.bytes(r));
    offsets[r] = static_cast<int>(packed ? at : counts[r] > 0 ? parts.offset(r) : 0);
    if (packed && counts[r] > 0)
      transfer.copy_back(bytes_at(call.out, parts.offset(r)), static_cast<std::size_t>(at),
                         static_cast<std::size_t>(parts.bytes(r)));
    at += parts.bytes(r);
  }
  check(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_BYTE, out, counts, offsets, MPI_BYTE, view.comm, transfer.request()),
        "MPI_Iallgatherv");
}

void all_to_allv(const CommView& view, const Call& call, MpiTransfer& transfer) {
  const Parts in(call.in_counts, call.in_offsets, view.size, call.dtype);
  const Parts out(call.out_counts, call.out_offsets, view.size, call.dtype);
  const void* from = call.in;
  if (call.in == call.out && in.extent() > 0) {  // parts may overlap in any way: what is sent is copied
    const auto bytes = static_cast<std::size_t>(in.extent());
    from = std::memcpy(transfer.stage(bytes), call.in, bytes);
  }
  const Side send(view, in, transfer), receive(view, out, transfer);
  check(MPI_Ialltoallw(from, send.counts, send.offsets, send.types, call.out, receive.counts, receive.offsets,
                       receive.types, view.comm, transfer.request()),
        "MPI_Ialltoallw");
}

}  // namespace medley::mpi
